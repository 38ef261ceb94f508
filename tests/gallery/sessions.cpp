/* sessions.cpp: a web server with a cache of pages that fills and stays full, and sessions that are forgotten in one of
 * two indices. The cache is ten times as large as the leak. */
#include <cstdlib>
#include <list>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include <unistd.h>

class Cache
{
    std::list<std::pair<std::string, std::string>> pages;
    std::unordered_map<std::string, decltype(pages)::iterator> index;

  public:
    const std::string &page(const std::string &path)
    {
        auto found = index.find(path);
        if (found != index.end()) {
            pages.splice(pages.begin(), pages, found->second);
            return found->second->second;
        }
        if (pages.size() >= 200) {
            index.erase(pages.back().first);
            pages.pop_back();
        }
        pages.emplace_front(path, std::string(16384, 'x')); /* cache */
        index[path] = pages.begin();
        return pages.front().second;
    }
};

struct Session {
    std::string user;
    std::map<std::string, std::string> values;
};

class Sessions
{
    std::unordered_map<int, Session *> by_number;
    std::multimap<std::string, Session *> by_user;

  public:
    Session *open(int number, const std::string &user)
    {
        auto *session = new Session{user, {}};
        session->values["language"] = "the language that this user reads and writes";
        by_number[number] = session;
        by_user.emplace(user, session); /* planted */
        return session;
    }
    void close(int number)
    {
        delete by_number[number];
        by_number.erase(number); /* by_user keeps its entry */
    }
};

int main(int argc, char **argv)
{
    int requests = argc > 1 ? atoi(argv[1]) : 4000;
    Cache cache;
    auto *sessions = new Sessions;
    for (int i = 0; i < requests; i++) {
        cache.page("/page/" + std::to_string(i * 7919 % 400));
        sessions->open(i, "a user with a long name " + std::to_string(i % 1000));
        if (i >= 20)
            sessions->close(i - 20);
        usleep(150);
    }
}
