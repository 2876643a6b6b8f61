# Matrix products beside oneDNN, where it is installed (libdnnl-dev). Its Debian build threads with
# libgomp, which the peer is told to use one thread of.
find_library(TANDEM_ONEDNN dnnl)
find_path(TANDEM_ONEDNN_INCLUDE oneapi/dnnl/dnnl.hpp)
if(TANDEM_ONEDNN AND TANDEM_ONEDNN_INCLUDE)
  add_executable(gemm_bench gemm_bench.cc gemm_onednn.cc)
  target_link_libraries(gemm_bench PRIVATE ${TANDEM_ONEDNN} gomp)
else()
  add_executable(gemm_bench gemm_bench.cc gemm_alone.cc)
endif()
target_link_libraries(gemm_bench PRIVATE tandem_flags tandem_kernels benchmark::benchmark)
set_target_properties(gemm_bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
