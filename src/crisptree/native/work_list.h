// Trees as a work list: several threads train them, and the thread that called looks at signals and tells of the first one.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>

#include "pool.h"

namespace crisptree {

class WorkList {
 public:
  // `look` is called by the calling thread, now and then while it works or waits; it throws to end the work.
  WorkList(int64_t n_tasks, int n_threads, std::function<void()> look)
      : n_tasks_(n_tasks), n_workers_(static_cast<int>(std::min<int64_t>(n_threads, n_tasks))), n_inner_(n_threads / std::max(n_workers_, 1)), look_(std::move(look)) {}

  // Calls task(0, pool) on the calling thread and all others on any thread; each has threads of its own where there are more than tasks.
  template <class Task>
  void run(const Task& task) {
    const std::thread::id caller = std::this_thread::get_id();
    Pool pool(n_workers_);
    pool.run(n_workers_, [&](int64_t) {
      try {
        Pool own(n_inner_);
        const bool is_caller = std::this_thread::get_id() == caller;
        if (is_caller) work_first(task, own);
        for (int64_t number; !is_ended_ && (number = next_.fetch_add(1)) < n_tasks_;) work(number, task, own);
        if (is_caller) wait();
      } catch (...) {
        end();
        throw;
      }
    });
    // The other threads may have left nothing for this one, not even to begin.
    Pool own(n_inner_);
    if (!is_ended_) work_first(task, own);
  }

  // No further task begins, and those at work stop at their next stage.
  void end() {
    is_ended_ = true;
    changed_.notify_all();
  }
  bool is_ended() const { return is_ended_; }

 private:
  // On the calling thread, which may come here several times, or late.
  template <class Task>
  void work_first(const Task& task, Pool& pool) {
    if (is_first_begun_) return;
    is_first_begun_ = true;
    work(0, task, pool);
  }

  template <class Task>
  void work(int64_t number, const Task& task, Pool& pool) {
    task(number, pool);
    const std::lock_guard<std::mutex> lock(mutex_);
    ++n_done_;
    changed_.notify_all();
  }

  void wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (n_done_ < n_tasks_ && !is_ended_) {
      changed_.wait_for(lock, std::chrono::milliseconds(20));
      lock.unlock();
      look_();
      lock.lock();
    }
  }

  const int64_t n_tasks_;
  const int n_workers_, n_inner_;
  const std::function<void()> look_;
  std::atomic<int64_t> next_{1};
  std::atomic<bool> is_ended_{false};
  bool is_first_begun_ = false;  // the calling thread's own
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t n_done_ = 0;
};

}  // namespace crisptree
