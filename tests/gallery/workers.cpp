/* workers.cpp: threads that take jobs from a queue. Each job's result is kept for a reader that never comes. */
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

class Queue
{
    std::mutex lock;
    std::condition_variable changed;
    std::deque<std::function<void()>> jobs;
    bool is_closed = false;

  public:
    void push(std::function<void()> job)
    {
        std::lock_guard<std::mutex> guard(lock);
        jobs.push_back(std::move(job));
        changed.notify_one();
    }
    bool pop(std::function<void()> &job)
    {
        std::unique_lock<std::mutex> guard(lock);
        changed.wait(guard, [this] { return is_closed || !jobs.empty(); });
        if (jobs.empty())
            return false;
        job = std::move(jobs.front());
        jobs.pop_front();
        return true;
    }
    void close()
    {
        std::lock_guard<std::mutex> guard(lock);
        is_closed = true;
        changed.notify_all();
    }
};

struct Result {
    std::string text;
    double values[20] = {};
};
struct Results {
    std::mutex lock;
    std::vector<std::unique_ptr<Result>> kept;
};

int main(int argc, char **argv)
{
    int jobs = argc > 1 ? atoi(argv[1]) : 3000;
    Queue queue;
    auto *results = new Results;
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++)
        threads.emplace_back([&queue] {
            for (std::function<void()> job; queue.pop(job);)
                job();
        });
    for (int i = 0; i < jobs; i++) {
        std::string input(200, 'a' + i % 26);
        queue.push([results, input, i] {
            auto result = std::make_unique<Result>(); /* planted */
            result->values[i % 20] = static_cast<double>(input.size());
            std::lock_guard<std::mutex> guard(results->lock);
            results->kept.push_back(std::move(result));
        });
        usleep(200);
    }
    queue.close();
    for (auto &thread : threads)
        thread.join();
}
