// Threads that wait for work between two steps of a training. No Python objects in here.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace crisptree {

class Pool {
 public:
  explicit Pool(int n_threads) {
    try {
      for (int number = 1; number < n_threads; ++number) workers_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
      // The machine gives no more threads: those that there are do the work.
    }
  }

  ~Pool() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      closed_ = true;
    }
    called_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  // Calls task(0) … task(n_tasks − 1), each once. The caller works too, and waits for nobody who has not begun: a thread
  // whose core is taken by another program holds nothing up.
  void run(int64_t n_tasks, const std::function<void(int64_t)>& task) {
    if (workers_.empty() || n_tasks <= 1) {
      for (int64_t number = 0; number < n_tasks; ++number) task(number);
      return;
    }
    const auto job = std::make_shared<Job>();
    job->task = &task;
    job->n_tasks = n_tasks;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      job_ = job;
    }
    called_.notify_all();
    help(*job);
    while (job->done.load(std::memory_order_acquire) < n_tasks) std::this_thread::yield();
    if (job->failure) std::rethrow_exception(job->failure);
  }

 private:
  struct Job {
    const std::function<void(int64_t)>* task;
    int64_t n_tasks;
    std::atomic<int64_t> next{0};
    std::atomic<int64_t> done{0};
    std::atomic<bool> failed{false};
    std::exception_ptr failure;
  };

  static void help(Job& job) {
    for (int64_t number; (number = job.next.fetch_add(1)) < job.n_tasks;) {
      try {
        if (!job.failed) (*job.task)(number);
      } catch (...) {
        if (!job.failed.exchange(true)) job.failure = std::current_exception();
      }
      job.done.fetch_add(1, std::memory_order_release);
    }
  }

  void work() {
    std::shared_ptr<Job> last;
    while (true) {
      std::shared_ptr<Job> job;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        called_.wait(lock, [&] { return closed_ || job_ != last; });
        if (closed_) return;
        job = job_;
      }
      help(*job);
      last = job;
    }
  }

  std::mutex mutex_;
  std::condition_variable called_;
  std::shared_ptr<Job> job_;
  bool closed_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace crisptree
