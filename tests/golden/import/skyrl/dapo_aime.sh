CLIP_RATIO_HIGH=0.28
N=16
MODEL=/models/Qwen2.5-7B
uv run -m skyrl.train.entrypoints.main_base \
  data.train_data="['/data/dapo.parquet']" \
  trainer.policy.model.path=$MODEL \
  trainer.algorithm.policy_loss_type="dual_clip" \
  trainer.algorithm.clip_ratio_c=10.0 \
  trainer.algorithm.eps_clip_high=$CLIP_RATIO_HIGH \
  trainer.algorithm.dynamic_sampling.type=filter \
  trainer.algorithm.dynamic_sampling.max_sample_batches=-1 \
  trainer.algorithm.use_kl_loss=false \
  trainer.algorithm.off_policy_correction.tis_ratio_type=token \
  trainer.algorithm.off_policy_correction.sequence_mask_metric=geometric \
  trainer.policy.optimizer_config.num_warmup_steps=160 \
  trainer.policy.optimizer_config.weight_decay=0.1 \
  trainer.train_batch_size=512 trainer.policy_mini_batch_size=32 \
  generator.n_samples_per_prompt=$N \
  generator.sampling_params.max_generate_length=8192 \
  generator.eval_sampling_params.temperature=1.0 \
  generator.eval_sampling_params.top_p=0.7 \
  generator.eval_n_samples_per_prompt=32 \
  generator.apply_overlong_filtering=true \
  generator.inference_engine.tensor_parallel_size=2 \
  environment.env_class=aime \
  trainer.logger=tensorboard
