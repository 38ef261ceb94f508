// large.cpp: templates enough to make a compiler allocate for some seconds.
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

template <int N> struct chain {
    std::map<std::string, std::tuple<int, std::shared_ptr<chain<N - 1>>>> table;
    std::variant<int, std::string, std::vector<chain<N - 1>>> choice;
    std::function<int(const chain<N - 1> &)> call = [](const chain<N - 1> &inner) { return inner.depth() + N; };
    int depth() const
    {
        return call(chain<N - 1>{}) + static_cast<int>(table.size());
    }
};

template <> struct chain<0> {
    int depth() const
    {
        return 0;
    }
};

int main()
{
    std::regex pattern("([a-z]+)([0-9]{2,})");
    std::unordered_map<std::string, std::vector<int>> found;
    std::ostringstream text;
    for (int i = 0; i < 500; i++)
        text << "word" << i * 7 % 100 << ' ';
    std::string all = text.str();
    for (std::sregex_iterator at(all.begin(), all.end(), pattern), end; at != end; ++at)
        found[(*at)[1]].push_back(std::stoi((*at)[2]));
    std::vector<int> &numbers = found["word"];
    std::sort(numbers.begin(), numbers.end(), std::greater<>());
    std::cout << numbers.size() << ' ' << numbers.front() << ' ' << chain<12>{}.depth() << '\n';
}
