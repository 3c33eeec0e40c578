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

#if !defined(_WIN32)
#include <unistd.h>
#endif

namespace crisptree {

class Pool {
 public:
  explicit Pool(int n_threads) : state_(std::make_unique<State>()), process_(this_process()) {
    try {
      for (int number = 1; number < n_threads; ++number) state_->workers.emplace_back(work, state_.get());
    } catch (const std::system_error&) {
      // The machine gives no more threads: those that there are do the work.
    }
  }

  ~Pool() {
    if (is_elsewhere()) {
      // The threads are not in this process; to wait for them, or to take down what they wait on, would never end.
      state_.release();
      return;
    }
    {
      const std::lock_guard<std::mutex> lock(state_->mutex);
      state_->closed = true;
    }
    state_->called.notify_all();
    for (std::thread& worker : state_->workers) worker.join();
  }

  Pool(const Pool&) = delete;

  // Calls task(0) … task(n_tasks − 1), each once. The caller works too, and waits for nobody who has not begun: a thread
  // whose core is taken by another program holds nothing up.
  void run(int64_t n_tasks, const std::function<void(int64_t)>& task) {
    if (n_tasks <= 1 || state_->workers.empty() || is_elsewhere()) {
      for (int64_t number = 0; number < n_tasks; ++number) task(number);
      return;
    }
    const auto job = std::make_shared<Job>();
    job->task = &task;
    job->n_tasks = n_tasks;
    {
      const std::lock_guard<std::mutex> lock(state_->mutex);
      state_->job = job;
    }
    state_->called.notify_all();
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

  struct State {
    std::mutex mutex;
    std::condition_variable called;
    std::shared_ptr<Job> job;
    bool closed = false;
    std::vector<std::thread> workers;
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

  static void work(State* state) {
    std::shared_ptr<Job> last;
    while (true) {
      std::shared_ptr<Job> job;
      {
        std::unique_lock<std::mutex> lock(state->mutex);
        state->called.wait(lock, [&] { return state->closed || state->job != last; });
        if (state->closed) return;
        job = state->job;
      }
      help(*job);
      last = job;
    }
  }

  // A process that forks takes the pool along, but not its threads.
  static int64_t this_process() {
#if defined(_WIN32)
    return 0;
#else
    return static_cast<int64_t>(getpid());
#endif
  }
  bool is_elsewhere() const { return this_process() != process_; }

  std::unique_ptr<State> state_;
  int64_t process_;
};

}  // namespace crisptree
