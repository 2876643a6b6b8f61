# The operators by file: ops/NAME.cc has the checks, cpu/NAME.cc and cuda/NAME.cu the arithmetic. A
# file has one operator or a few that belong together; operator_list.h has them all.
set(TANDEM_OPERATORS
  adamw attention attention_input elementwise embedding global_norm kv_cache
  log_prob matmul policy_loss rms_norm rope sample sum_pieces swiglu)
