// Both functions walk the segments of notes of an ELF image. A note is a header of three numbers, a
// name and a description, which are padded to four bytes each.
#include "runtime/base/build_id.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "runtime/base/digest.h"
#include "runtime/base/file.h"

namespace tandem {
namespace {

constexpr std::size_t kNotesBytesMax = std::size_t{64} << 10;
constexpr std::size_t kSegmentsMax = 256;
constexpr std::string_view kOwner("GNU\0", 4);

std::size_t padded(std::size_t bytes) { return (bytes + 3) / 4 * 4; }

// The id among these notes; empty where none of them is one.
std::string id_in(std::span<const std::byte> notes) {
  ElfW(Nhdr) note;
  while (notes.size() >= sizeof(note)) {
    std::memcpy(&note, notes.data(), sizeof(note));
    notes = notes.subspan(sizeof(note));
    const std::size_t name = padded(note.n_namesz), content = padded(note.n_descsz);
    if (name > notes.size() || content > notes.size() - name) return "";
    const bool is_id = note.n_type == NT_GNU_BUILD_ID && note.n_namesz == kOwner.size() &&
                       std::memcmp(notes.data(), kOwner.data(), kOwner.size()) == 0;
    if (is_id) return hex(notes.subspan(name, note.n_descsz));
    notes = notes.subspan(name + content);
  }
  return "";
}

// The first object that the loader tells of is the program, also where it was started by the words
// of a loader.
int look_at_program(dl_phdr_info* object, std::size_t, void* id) {
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* const begin =
        reinterpret_cast<const std::byte*>(object->dlpi_addr + segment.p_vaddr);
    auto& found = *static_cast<std::string*>(id);
    if (found = id_in({begin, segment.p_memsz}); !found.empty()) break;
  }
  return 1;  // no further object
}

bool read_at(int fd, std::uint64_t offset, std::span<std::byte> bytes) {
  return ::pread(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset)) ==
         static_cast<ssize_t>(bytes.size());
}

}  // namespace

std::string own_build_id() {
  std::string id;
  ::dl_iterate_phdr(look_at_program, &id);
  return id;
}

std::string build_id_of(const std::filesystem::path& file) {
  const OwnedFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  ElfW(Ehdr) head;
  if (!fd || !read_at(fd.get(), 0, std::as_writable_bytes(std::span(&head, 1)))) return "";
  if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_phentsize != sizeof(ElfW(Phdr)) ||
      head.e_phnum > kSegmentsMax)
    return "";
  std::vector<ElfW(Phdr)> segments(head.e_phnum);
  if (!read_at(fd.get(), head.e_phoff, std::as_writable_bytes(std::span(segments)))) return "";
  for (const auto& segment : segments) {
    if (segment.p_type != PT_NOTE || segment.p_filesz > kNotesBytesMax) continue;
    std::vector<std::byte> notes(segment.p_filesz);
    if (!read_at(fd.get(), segment.p_offset, notes)) continue;
    if (std::string id = id_in(notes); !id.empty()) return id;
  }
  return "";
}

}  // namespace tandem
