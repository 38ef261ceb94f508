/* tree.hpp: a library of one header, as projects keep it in a folder for what others wrote. Part of documents.cpp. */
#ifndef TREE_HPP
#define TREE_HPP

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tree
{

class value
{
  public:
    value() = default;
    explicit value(std::string text) : text_(std::move(text))
    {
    }

    value &operator[](const std::string &name)
    {
        auto &slot = members_[name];
        if (slot == nullptr)
            slot = std::make_unique<value>();
        return *slot;
    }

    void push_back(std::string text)
    {
        items_.push_back(std::make_unique<value>(std::move(text)));
    }

    static std::unique_ptr<value> parse(const std::string &line)
    {
        auto root = std::make_unique<value>();
        for (size_t at = 0, end; at < line.size(); at = end + 1) {
            end = line.find(' ', at);
            if (end == std::string::npos)
                end = line.size();
            (*root)["words"].push_back(line.substr(at, end - at));
        }
        return root;
    }

  private:
    std::string text_;
    std::map<std::string, std::unique_ptr<value>> members_;
    std::vector<std::unique_ptr<value>> items_;
};

} // namespace tree

#endif
