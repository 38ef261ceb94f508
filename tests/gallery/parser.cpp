/* parser.cpp: a parser of nested lists, in functions that call each other, dozens of levels deep. The trees of the
 * documents are never freed. */
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

struct Node {
    std::string text;
    std::vector<Node *> children;
    int depth = 0;
};

class Parser
{
    const char *at;
    int depth = 0;

  public:
    explicit Parser(const char *text) : at(text)
    {
    }
    Node *parse_value()
    {
        return *at == '(' ? parse_list() : parse_word();
    }

  private:
    __attribute__((noinline)) Node *parse_list()
    {
        Node *list = make_node();
        depth++;
        for (at++; *at != ')' && *at != '\0';)
            list->children.push_back(parse_value());
        depth--;
        at += *at == ')';
        return list;
    }
    __attribute__((noinline)) Node *parse_word()
    {
        Node *word = make_node();
        while (*at != '(' && *at != ')' && *at != '\0')
            word->text += *at++;
        return word;
    }
    __attribute__((noinline)) Node *make_node()
    {
        Node *node = new Node; /* planted */
        node->depth = depth;
        return node;
    }
};

int main()
{
    std::string text;
    for (int i = 0; i < 60; i++)
        text += "(a(b)c";
    text.append(60, ')');
    for (int i = 0; i < 40; i++)
        Parser(text.c_str()).parse_value();
}
