#!/usr/bin/env python3
"""Each rule of check_layers.py catches its violation, and only that."""
import pathlib
import tempfile
import unittest

import check_layers


def errors_of(files):
    """The faults that check() finds in a tree of these files: path -> text."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return check_layers.check(root)


class Rules(unittest.TestCase):
    def assert_caught(self, rule, name, text):
        errors = errors_of({name: text})
        self.assertEqual(len(errors), 1, errors)
        self.assertTrue(errors[0].startswith(name), errors)
        self.assertIn(rule, errors[0])

    def test_la1_a_layer_includes_only_what_is_below_it(self):
        for name, included in [
                ("runtime/base/a.h", "runtime/wire/codec.h"),
                ("runtime/actor/a.h", "kernels/backend.h"),
                ("runtime/actor/a.h", "runtime/link/link.h"),
                ("kernels/ops/a.h", "scheduler/batch/step_plan.h"),
                ("scheduler/fleet/a.cc", "runtime/actor/actor.h"),
                ("actors/messages/a.h", "runtime/link/link.h"),
                ("actors/rollout/a.h", "actors/learner/gang.h"),
                ("actors/reward/a.h", "scheduler/fleet/ledger.h"),
                ("actors/controller/a.h", "kernels/backend.h"),
                ("actors/rollout/a.h", "engine.h"),
                ("actors/cli/a.h", "actors/main/local_run.h"),
                ("actors/cli/a.h", "actors/controller/controller.h"),
                ("actors/job/a.h", "actors/cli/verb.h"),
                ("actors/job/a.h", "actors/main/role_config.h"),
        ]:
            self.assert_caught("LA-1", name, f'#include "{included}"\n')
        self.assert_caught("LA-1", "actors/critic/a.h", "")

    def test_la1_what_is_below_is_allowed(self):
        for name, included in [
                ("runtime/link/a.h", "runtime/actor/ref.h"),
                ("runtime/link/a.h", "runtime/wire/codec.h"),
                ("runtime/node/a.h", "runtime/link/link.h"),
                ("runtime/weights/a.h", "runtime/device/manifest.h"),
                ("kernels/cpu/a.h", "kernels/backend.h"),
                ("actors/model/a.h", "kernels/ops/matmul.h"),
                ("actors/controller/a.h", "scheduler/fleet/ledger.h"),
                ("actors/main/a.h", "actors/learner/gang.h"),
                ("actors/main/a.h", "actors/cli/verb.h"),
                ("actors/cli/a.h", "actors/job/job_spec.h"),
        ]:
            self.assertEqual(errors_of({name: f'#include "{included}"\n'}), [], name)

    def test_la2_libraries_stay_at_home(self):
        for name, included in [
                ("actors/controller/a.cc", "yaml-cpp/yaml.h"),
                ("actors/rollout/a.cc", "zmq.hpp"),
                ("actors/controller/a.cc", "sqlite3.h"),
                ("actors/reward/a.cc", "boost/asio/io_context.hpp"),
                ("runtime/link/a.cc", "CLI/CLI.hpp"),
                ("scheduler/fleet/a.cc", "spdlog/spdlog.h"),
                ("kernels/cpu/matmul.cc", "oneapi/dnnl/dnnl.hpp"),
                ("kernels/cpu/matmul.cc", "cuda_runtime.h"),
                ("actors/rollout/a.cc", "cublasLt.h"),
        ]:
            files = {name: f"#include <{included}>\n", "kernels/ops/matmul.h": ""}
            self.assertEqual(len(errors_of(files)), 1, name)
            self.assertIn("LA-2", errors_of(files)[0])
        self.assertEqual(errors_of({"runtime/link/a.cc": "#include <zmq.hpp>\n"}), [])
        self.assertEqual(errors_of({"kernels/cuda/a.cuh": "#include <cuda_runtime.h>\n"}), [])

    def test_la3_threads_locks_and_sockets_are_runtimes(self):
        for line in ["std::thread worker;", "std::mutex mutex;", "#include <condition_variable>",
                     "const std::scoped_lock lock(mutex);", "int fd = ::socket(AF_INET, 0, 0);",
                     "#include <sys/socket.h>", "std::shared_mutex mutex;"]:
            self.assert_caught("LA-3", "actors/controller/a.cc", line + "\n")
            self.assertEqual(errors_of({"runtime/link/a.cc": line + "\n"}), [], line)
            self.assertEqual(errors_of({"tests/bench/a.cc": line + "\n"}), [], line)
        for line in ["int a;  // not a std::thread", "auto server = LinkServer::listen(options);"]:
            self.assertEqual(errors_of({"actors/main/a.cc": line + "\n"}), [], line)

    def test_la4_nothing_sleeps(self):
        for name in ["runtime/link/a.cc", "actors/main/a.cc", "tests/e2e/a_test.cc"]:
            self.assert_caught("LA-4", name, "std::this_thread::sleep_for(10ms);\n")
            self.assert_caught("LA-4", name, "usleep(10);\n")

    def test_la5_arithmetic_has_a_contract(self):
        self.assert_caught("LA-5", "kernels/cpu/convolution.cc", "")
        self.assert_caught("LA-5", "kernels/cuda/convolution.cu", "")
        self.assertEqual(
            errors_of({"kernels/cpu/convolution.cc": "", "kernels/cuda/convolution.cu": "",
                       "kernels/ops/convolution.h": ""}), [])

    def test_la6_files_are_short(self):
        self.assert_caught("LA-6", "runtime/base/a.h", "\n" * 251)
        self.assert_caught("LA-6", "runtime/base/a.cc", "\n" * 601)
        self.assert_caught("LA-6", "runtime/base/a.h", "  // " + "a" * 96 + "\n")
        self.assertEqual(errors_of({"runtime/base/a.h": "  // " + "ö" * 95 + "\n"}), [])
        self.assert_caught("LA-1", "actors/exchange/a.h", '#include "actors/doors/doors.h"\n')
        self.assertEqual(errors_of({"runtime/base/a.h": "\n" * 250}), [])

    def test_la7_no_ifdef(self):
        self.assert_caught("LA-7", "kernels/backend.h", "#ifdef TANDEM_CUDA\n")
        self.assertEqual(errors_of({"kernels/backend.h": "#pragma once\n"}), [])

    def test_la8_a_declared_invariant_is_cited(self):
        declared = "// What it is.\n//   AB-1  Nothing is lost.\n//   AB-12  Nor twice.\n"
        header = "runtime/link/a.h"
        self.assertEqual(errors_of({header: declared}), [
            f"{header}:2: LA-8: no test cites AB-1", f"{header}:3: LA-8: no test cites AB-12"])
        for citing in ["TEST(A, Loses) {  // AB-1, AB-12\n", "TEST_F(A, Loses_AB1_AB12) {\n",
                       "TEST_P(A,\n  AB1LosesNothing_AB_12) {\n", '<< "AB-1" << "AB-12";\n']:
            self.assertEqual(errors_of({header: declared, "tests/e2e/a_test.cc": citing}), [], citing)
        for other in ["// AB-2 XAB-1 AB-123\n", "TEST(A, CAB1_AB123) {\n", "int a_AB1_AB12;\n"]:
            self.assertEqual(len(errors_of({header: declared, "tests/e2e/a_test.cc": other})), 2, other)
        self.assertEqual(errors_of({header: "//   AB-C  Nothing is lost.\n"}),
                         [f"{header}:1: LA-8: AB-C has no number"])
        self.assertEqual(errors_of({header: "// AB-1  One.\n", "tests/e2e/a_test.cc": "// AB-1\n",
                                    "tests/e2e/b.h": "// AB-1  Another.\n"}),
                         [f"tests/e2e/b.h:1: LA-8: AB-1 is declared at {header}:1 as well"])
        for mention in ["// It counts on AB-1 and AB-2.\n", "int a;  // (AB-1)\n",
                        "AB-1  no comment\n", "// UTF-8  is no invariant\n"]:
            self.assertEqual(errors_of({header: mention}), [], mention)
        self.assertEqual(errors_of({"runtime/link/a.cc": declared}), [], "headers declare")
        twice = {header: declared, "runtime/link/b.h": "// AB-1  Something else.\n",
                 "tests/e2e/a_test.cc": "// AB-1 AB-12\n"}
        self.assertEqual(errors_of(twice), [
            f"runtime/link/b.h:1: LA-8: AB-1 is declared at {header}:2 as well"])

    def test_la9_no_circles_by_stem(self):
        def including(*names):
            return "".join(f'#include "runtime/base/{name}.h"\n' for name in names)

        # a.cc includes b.h, and b.h includes a.h: in no file alone is there a circle.
        circle = {"runtime/base/a.h": "", "runtime/base/a.cc": including("a", "b"),
                  "runtime/base/b.h": including("a")}
        self.assertEqual(errors_of(circle), [
            "runtime/base/a: LA-9: in a circle with runtime/base/b"])
        longer = {"runtime/base/a.h": including("b"), "runtime/base/b.h": including("c"),
                  "runtime/base/c.cc": including("a", "d"), "runtime/base/d.h": ""}
        self.assertEqual(errors_of(longer), [
            "runtime/base/a: LA-9: in a circle with runtime/base/b, runtime/base/c"])
        ladder = {"runtime/base/a.h": including("b", "c"), "runtime/base/a.cc": including("a", "c"),
                  "runtime/base/b.h": including("c"), "runtime/base/c.h": ""}
        self.assertEqual(errors_of(ladder), [])

    def test_la9_no_circles_of_folders(self):
        circle = {"kernels/a.h": '#include "kernels/ops/b.h"\n', "kernels/ops/b.h": "",
                  "kernels/ops/c.h": '#include "kernels/d.h"\n', "kernels/d.h": ""}
        self.assertEqual(errors_of(circle), ["kernels: LA-9: in a circle with kernels/ops"])
        del circle["kernels/a.h"]
        self.assertEqual(errors_of(circle), [])

    def test_la10_a_class_with_state_is_small(self):
        many = "".join(f"  int field_{n}_ = {n};\n" for n in range(21))
        name = "runtime/base/a.h"
        for text in ["class A {\n public:\n  A();\n  int get() const;\n\n private:\n" + many + "};\n",
                     "struct A {\n  void step() { f({1}); }\n" + many + "};\n",
                     "struct B::A : C<D, 2> {\n  Result<void> step(int, int);\n" + many + "};\n"]:
            self.assert_caught("LA-10", name, text)
            self.assertEqual(errors_of({name: text.replace("  int field_20_ = 20;\n", "")}), [])
            self.assertIn("21 fields", errors_of({name: text})[0])
        for text in ["struct A {\n" + many + "};\n",
                     "struct A {\n  A() : x({1}) {}\n  bool operator==(const A&) const = default;\n"
                     "  int sum(int (*of)(int), B b = {}) const { return of(1) + field_0_; }\n"
                     "  static A parse(std::string_view text);\n" + many + "};\n",
                     "class A {\n  int one_;\n" + many.replace("int", "void (*").replace(" =", ")() =")
                     + "};\n"]:
            self.assertEqual(errors_of({name: text}), [], text)

    def test_la11_a_file_opens_the_namespace_of_its_folder(self):
        def block(namespace, line="struct A {\n};\n"):
            return f"namespace {namespace} {{\n{line}}}  // namespace {namespace}\n"

        for name, namespace in [("runtime/link/a.h", "tandem::runtime"),
                                ("runtime/link/a.cc", "tandem::wire"),
                                ("runtime/base/a.h", "tandem::base"),
                                ("actors/model/a.h", "tandem::actors")]:
            self.assert_caught("LA-11", name, block(namespace))
        for name, namespace in [("runtime/link/a.h", "tandem::link"), ("runtime/base/a.h", "tandem"),
                                ("runtime/link/a.h", "tandem::link::remote_detail"),
                                ("actors/model/a.h", "tandem::model")]:
            self.assertEqual(errors_of({name: block(namespace)}), [])
        fields = block("tandem", "TANDEM_WIRE(ActorId, name,\n            incarnation)\n")
        foreign = "namespace zmq {\nclass context_t;\n}\n"
        self.assertEqual(errors_of({"runtime/link/a.h": fields + foreign}), [])

    def test_la12_a_name_is_one_type(self):
        def block(line):
            return f"namespace tandem::link {{\n{line}\n}}  // namespace tandem::link\n"

        one, other = "runtime/link/a.h", "runtime/link/b.cc"
        for name, twice in [("A", "struct A {};"), ("A", "class A final : B {};"),
                            ("A", "enum class A { kX };"), ("A::State", "struct A::State {\n};")]:
            self.assertEqual(errors_of({one: block(twice), other: block(twice)}), [
                f"{other}:2: LA-12: tandem::link::{name} is defined at {one}:2 as well"])
        for second in ["struct A;", "struct A::State {\n};", "template <>\nstruct A<int> {};",
                       "namespace {\nstruct A {};\n}  // namespace"]:
            self.assertEqual(errors_of({one: block("struct A {};"), other: block(second)}), [])

    def test_la13_a_test_mirrors_what_it_tests_or_says_what(self):
        source = {"runtime/base/a.h": "", "runtime/base/b.h": ""}
        tests = "tests/runtime/base/"
        for name, text in [("a_test.cc", ""), ("other_test.cc", "// Tests runtime/base/a.h.\n"),
                           ("other_test.cc", "// What holds.\n//\n// Tests runtime/base/a.h,\n"
                                             "// runtime/base/b.h.\n")]:
            self.assertEqual(errors_of(source | {tests + name: text}), [])
        self.assertEqual(errors_of({"tests/e2e/other_test.cc": ""}), [])
        for text in ["", "int x;  // Tests runtime/base/a.h.\n", "// Tests everything.\n",
                     "// Tests runtime/base/c.h.\n"]:
            errors = errors_of(source | {tests + "other_test.cc": text})
            self.assertEqual(len(errors), 1, errors)
            self.assertIn("LA-13", errors[0])

    def test_la10_counts_fields_alone(self):
        text = """
// class Not { int a; }
class A final : public B<int, 2>, C {
 public:
  explicit A(std::vector<int> given) : a_{1}, b_(2), map_{} {}
  using T = std::map<int, int>;
  enum class Phase { kNew, kOld };
  struct Inner {
    int x = 0, y = 0;
  };
  static constexpr int kMax = 3;
  std::function<void(int, int)> heard;
  template <class T>
  void put(T&& value);
  A operator+(const A& other) const;

 private:
  friend class D;
  const std::array<int, 3> a_{1, 2, 3};
  std::uint64_t b_ = 1ull << 20, c_ = 0;
  std::map<std::string, std::pair<int, int>> map_;
  std::atomic<bool> done_ = false;  // guarded; by nothing
  Inner inner_{.x = 1};
};
"""
        sizes = {size.name: size for size in check_layers.class_sizes.class_sizes(text)}
        self.assertEqual(sizes["A"], ("A", 3, 7, True))
        self.assertEqual(sizes["Inner"], ("Inner", 8, 2, False))

    def test_la14_tests_that_are_compiled_together_take_no_name_from_each_other(self):
        tree = {
            "tests/runtime/base/CMakeLists.txt":
                "tandem_tests(base_tests LABELS fast FILES a_test b_test DEPS x)\n",
            "tests/runtime/base/a_test.cc":
                "// Tests runtime/base/a.h.\nnamespace tandem {\nnamespace {\n"
                "const ActorId kPeer{1};\nstruct Note {};\n}\n}\n",
            "tests/runtime/base/b_test.cc":
                "// Tests runtime/base/a.h.\nnamespace tandem {\nnamespace {\n"
                "TEST(Note, A) { use(kPeer); }\n}\n}\n",
            "runtime/base/a.h": "#pragma once\n"}
        errors = errors_of(tree)
        self.assertEqual(len(errors), 1, errors)
        self.assertIn("a_test.cc: LA-14: b_test.cc is compiled with it and uses kPeer", errors[0])
        tree["tests/runtime/base/b_test.cc"] = tree["tests/runtime/base/b_test.cc"].replace(
            "use(kPeer)", "const int kPeer = 1; use(kPeer)")
        self.assertEqual(errors_of(tree), [])


if __name__ == "__main__":
    unittest.main()
