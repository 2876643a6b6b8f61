add_executable(learner_bench learner_bench.cc)
target_link_libraries(learner_bench PRIVATE tandem_flags tandem_learner benchmark::benchmark
  nlohmann_json::nlohmann_json)
target_compile_definitions(learner_bench PRIVATE TANDEM_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
set_target_properties(learner_bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
