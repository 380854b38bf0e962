// Every file of the hostile corpus is refused with its own code, a message that names the file, and nothing
// worse; so is every truncation of a good file, and every object that is not a regular file.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

#include "io/checkpoint.h"
#include "io/safetensors_reader.h"
#include "io/shard_index.h"
#include "tests/io/files.h"
#include "tests/io/hostile_files.h"

namespace fmhc::io {
namespace {

using test::HostileFile;
using test::TempDir;
using test::write_file;

Errc code_of(const std::string& path) {
  const auto reader = SafetensorsReader::open(path);
  EXPECT_FALSE(reader.ok()) << path;
  return reader.ok() ? Errc::kBadRequest : reader.fault().code;
}

TEST(HostileFiles, EachIsRefusedWithItsCode) {
  TempDir dir;
  std::set<std::string> names;
  std::set<Errc> codes;
  for (const HostileFile& file : test::hostile_safetensors()) {
    const std::string path = dir / (file.name + ".safetensors");
    write_file(path, file.bytes());
    const auto reader = SafetensorsReader::open(path);
    ASSERT_FALSE(reader.ok()) << file.name;
    EXPECT_STREQ(errc_name(reader.fault().code), errc_name(file.wanted)) << reader.fault().message();
    const std::string message = reader.fault().message();
    EXPECT_NE(message.find(path), std::string::npos) << message;
    EXPECT_LT(message.size(), path.size() + 700) << file.name;
    EXPECT_EQ(message.find('\n'), std::string::npos) << file.name;
    names.insert(file.name);
    codes.insert(file.wanted);
    std::filesystem::remove(path);
  }
  EXPECT_EQ(names.size(), 146U);
  EXPECT_EQ(codes.size(), 25U);
}

TEST(HostileFiles, EachIndexIsRefusedWithItsCode) {
  std::set<std::string> names;
  for (const HostileFile& file : test::hostile_indices()) {
    const auto index = parse_shard_index(file.bytes(), "index.json");
    ASSERT_FALSE(index.ok()) << file.name;
    EXPECT_STREQ(errc_name(index.fault().code), errc_name(file.wanted)) << index.fault().message();
    names.insert(file.name);
  }
  EXPECT_EQ(names.size(), 31U);
}

std::string small_file() {
  return test::safetensors(
      R"({"__metadata__":{"a":"b"},"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
      R"("u":{"dtype":"U8","shape":[3],"data_offsets":[8,11]}} )",
      11);
}

TEST(HostileFiles, TruncatedAtEveryByte) {
  TempDir dir;
  const std::string whole = small_file(), path = dir / "cut.safetensors";
  write_file(path, whole);
  ASSERT_TRUE(SafetensorsReader::open(path).ok());
  size_t cases = 0;
  for (size_t length = 0; length < whole.size(); ++length, ++cases) {
    write_file(path, whole.substr(0, length));
    const Errc wanted = length < 8                   ? Errc::kTooShort
                        : length < whole.size() - 11 ? Errc::kHeaderPastEnd
                                                     : Errc::kPastEnd;
    ASSERT_STREQ(errc_name(code_of(path)), errc_name(wanted)) << length;
  }
  EXPECT_EQ(cases, whole.size());
  write_file(path, whole + "x");
  EXPECT_EQ(code_of(path), Errc::kTail);
}

// No single flipped bit of the length or header may crash the reader or make it read outside the file.
TEST(HostileFiles, EveryFlippedBitIsRefusedOrStaysInside) {
  TempDir dir;
  const std::string whole = small_file(), path = dir / "flip.safetensors";
  size_t refused = 0, accepted = 0;
  for (size_t bit = 0; bit < 8 * (whole.size() - 11); ++bit) {
    std::string bytes = whole;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
    write_file(path, bytes);
    const auto reader = SafetensorsReader::open(path);
    reader.ok() ? ++accepted : ++refused;
    if (!reader.ok()) continue;
    for (const TensorInfo& tensor : reader->tensors()) {
      const auto read = reader->read(tensor);
      ASSERT_TRUE(read.ok()) << read.fault().message();
      EXPECT_EQ(read->buffer.size(), tensor.bytes());
    }
  }
  EXPECT_GT(refused, 800U);
  EXPECT_GT(accepted, 20U);  // letters of names and metadata
}

TEST(HostileFiles, OnlyRegularFiles) {
  TempDir dir;
  const std::string fifo = dir / "fifo", socket_path = dir / "socket", missing = dir / "missing";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(socket_path.size(), sizeof address.sun_path);
  std::memcpy(address.sun_path, socket_path.c_str(), socket_path.size() + 1);
  const UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM, 0));
  ASSERT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  std::filesystem::create_symlink("/dev/zero", dir / "link_to_zero");
  std::filesystem::create_symlink("loop", dir / "loop");
  const struct {
    std::string path;
    Errc wanted;
  } cases[] = {
      {dir.path(), Errc::kNotAFile},
      {fifo, Errc::kNotAFile},
      {socket_path, Errc::kNotAFile},
      {"/dev/zero", Errc::kNotAFile},
      {"/dev/null", Errc::kNotAFile},
      {dir / "link_to_zero", Errc::kNotAFile},
      {dir / "loop", Errc::kCannotOpen},
      {missing, Errc::kCannotOpen},
      {missing + "/inside", Errc::kCannotOpen},
      {"", Errc::kCannotOpen},
      {dir / std::string(300, 'n'), Errc::kCannotOpen},
  };
  for (const auto& item : cases)
    EXPECT_STREQ(errc_name(code_of(item.path)), errc_name(item.wanted)) << item.path;
  EXPECT_EQ(std::size(cases), 11U);
}

// Runs the check in a child whose limits do not outlive it; its exit status says which fault came.
int code_in_child(const std::string& path, int resource, rlim_t limit) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limits{limit, limit};
    if (::setrlimit(resource, &limits) != 0) ::_exit(255);
    const auto reader = SafetensorsReader::open(path);
    ::_exit(reader.ok() ? 254 : static_cast<int>(reader.fault().code));
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(HostileFiles, OutOfDescriptors) {
  TempDir dir;
  const std::string path = dir / "good.safetensors";
  write_file(path, small_file());
  EXPECT_EQ(code_in_child(path, RLIMIT_NOFILE, 0), static_cast<int>(Errc::kCannotOpen));
}

#ifndef FMHC_TEST_SANITIZED  // sanitizers reserve terabytes of addresses
TEST(HostileFiles, OutOfMemory) {
  TempDir dir;
  const std::string path = dir / "sparse.safetensors";
  constexpr uint64_t kHeader = 90'000'000;
  write_file(path, test::length_field(kHeader));
  std::filesystem::resize_file(path, 8 + kHeader);
  rlim_t now = 0;
  std::ifstream("/proc/self/statm") >> now;
  now *= static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
  EXPECT_EQ(code_in_child(path, RLIMIT_AS, now + kHeader / 2), static_cast<int>(Errc::kOutOfMemory));
  EXPECT_EQ(code_in_child(path, RLIMIT_AS, now + kHeader * 2), static_cast<int>(Errc::kBadStart));
}
#endif

TEST(HostileFiles, AFileThatShrinksOrGrowsAfterOpening) {
  TempDir dir;
  const std::string path = dir / "moving.safetensors", whole = small_file();
  for (const size_t size : {whole.size() - 1, whole.size() - 11, size_t{0}, whole.size() + 1}) {
    write_file(path, whole);
    const auto reader = SafetensorsReader::open(path);
    ASSERT_TRUE(reader.ok());
    std::filesystem::resize_file(path, size);
    const auto tensor = reader->read("t");
    ASSERT_FALSE(tensor.ok()) << size;
    EXPECT_EQ(tensor.fault().code, Errc::kFileChanged) << tensor.fault().message();
  }
}

TEST(HostileFiles, LimitsOfTheCaller) {
  TempDir dir;
  const std::string path = dir / "good.safetensors";
  write_file(path, small_file());
  const auto code = [&](Limits limits) {
    const auto reader = SafetensorsReader::open(path, limits);
    return reader.ok() ? Errc::kBadRequest : reader.fault().code;
  };
  EXPECT_EQ(code({.header_bytes = 20}), Errc::kHeaderTooLong);
  EXPECT_EQ(code({.name_bytes = 5}), Errc::kNameTooLong);
  EXPECT_EQ(code({.tensors = 1}), Errc::kTooManyTensors);
  EXPECT_EQ(code({.rank = 0}), Errc::kRankTooHigh);
  EXPECT_EQ(code({.depth = 2}), Errc::kTooDeep);
}

// Legal oddities of the format stay readable.
TEST(UnusualFiles, AreRead) {
  TempDir dir;
  const std::string path = dir / "odd.safetensors";
  const std::pair<const char*, size_t> cases[] = {
      {"{}", 0},
      {"{}   \n", 0},
      {R"({"__metadata__":{}})", 0},
      {R"({"":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1},
      {R"({"t":{"dtype":"F32","shape":[],"data_offsets":[0,4]}})", 4},
      {R"({"t":{"dtype":"F32","shape":[0,5],"data_offsets":[0,0]},"u":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
       1},
      {R"({"u":{"data_offsets":[1,2],"shape":[1],"dtype":"I8"},"t":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}})",
       2},
      {R"({"t":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}})", 1},
      {R"({"t":{"dtype":"F6_E3M2","shape":[4],"data_offsets":[0,3]}})", 3},
      {R"({"t":{"dtype":"C64","shape":[1,1,1,1,1,1,1,1],"data_offsets":[0,8]}})", 8},
      {"{\"\xc3\xa9\":{\"dtype\":\"F8_E4M3\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1},
  };
  for (const auto& [header, bytes] : cases) {
    write_file(path, test::safetensors(header, bytes));
    const auto reader = SafetensorsReader::open(path);
    EXPECT_TRUE(reader.ok()) << header << ": " << reader.fault().message();
  }
}

}  // namespace
}  // namespace fmhc::io
