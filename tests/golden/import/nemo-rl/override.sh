uv run examples/run_grpo_math.py --config async_8b.yaml \
  grpo.num_generations_per_prompt=8 \
  policy.train_global_batch_size=128 \
  loss_fn.sequence_level_importance_ratios=true \
  ++policy.generation.vllm_kwargs.compilation_config.use_inductor=False \
  policy.dtensor_cfg.tensor_parallel_size=4 \
  env.sliding_puzzle.cfg=x \
  logger.wandb.name='gspo 8b'
