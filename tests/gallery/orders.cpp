/* orders.cpp: an order service. An order knows its watcher and the watcher its order: a cycle of shared_ptr. What the
 * orders hold is kept alive by it, on many other lines. */
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <unistd.h>

struct Order;
struct Watcher {
    std::shared_ptr<Order> order;
    std::function<void(const Order &)> changed;
    char address[128] = "";
};
struct Line {
    std::string article;
    int amount;
};
struct Order {
    int number = 0;
    std::string customer;
    std::vector<Line> lines;
    std::shared_ptr<Watcher> watcher;
    void watch(const std::shared_ptr<Order> &self);
};

void Order::watch(const std::shared_ptr<Order> &self)
{
    watcher = std::make_shared<Watcher>(); /* planted */
    watcher->order = self;
    watcher->changed = [number = number, who = customer](const Order &order) {
        if (order.number != number)
            puts(who.c_str());
    };
}

class Service
{
    std::map<std::string, double> prices;
    std::unordered_map<int, std::shared_ptr<Order>> open;
    std::map<std::string, std::vector<int>> by_customer;

  public:
    Service()
    {
        for (int i = 0; i < 2000; i++)
            prices["article number " + std::to_string(i) + " of the catalogue"] = i * 0.5;
    }
    void process(int number)
    {
        auto order = std::make_shared<Order>();
        order->number = number;
        order->customer = "customer with the number " + std::to_string(number % 50);
        for (int i = 0; i < 4; i++)
            order->lines.push_back({"article number " + std::to_string((number * 7 + i) % 2000) + " of all", i});
        open[number] = order;
        auto &numbers = by_customer[order->customer];
        numbers.push_back(number);
        if (numbers.size() > 20)
            numbers.clear();
        if (number % 3 == 0)
            order->watch(order);
    }
    void deliver(int number)
    {
        open.erase(number);
    }
};

int main(int argc, char **argv)
{
    int orders = argc > 1 ? atoi(argv[1]) : 3000;
    Service service;
    for (int i = 0; i < orders; i++) {
        service.process(i);
        if (i >= 100)
            service.deliver(i - 100);
        usleep(200);
    }
}
