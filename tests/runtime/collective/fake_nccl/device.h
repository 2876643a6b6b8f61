// GPU memory and streams as the fake NCCL needs them: the CUDA emulator's, where this process has
// its module open, else the process's own memory and a thread for each stream.
#pragma once

#include <cstddef>
#include <functional>

namespace fake_nccl {

// nullptr: there is no room.
void* allocate_device(std::size_t bytes);
void free_device(void* memory);
void read_device(const void* device, void* host, std::size_t bytes);
void write_device(void* device, const void* host, std::size_t bytes);

// `work` may block; work that is queued on its stream later waits for it.
void enqueue(void* stream, std::function<void()> work);

// Places in the work of a stream that is a thread: for tests without the emulator.
void* create_event();
void record_event(void* event, void* stream);
bool event_done(void* event);
void destroy_event(void* event);

}  // namespace fake_nccl
