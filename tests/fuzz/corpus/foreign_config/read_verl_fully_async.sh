set -x
threshold=0.5
python -m verl.experimental.fully_async_policy.fully_async_main \
    --config-path=config \
    --config-name='fully_async_ppo_trainer.yaml' \
    data.train_files=$HOME/verl/data/dapo-math-17k.parquet \
    data.val_files=$HOME/verl/data/aime-2024.parquet \
    data.max_prompt_length=2048 data.max_response_length=28672 \
    data.train_batch_size=0 data.gen_batch_size=1 \
    actor_rollout_ref.model.path=$HOME/models/Qwen2.5-Math-7B \
    actor_rollout_ref.actor.ppo_mini_batch_size=32 \
    actor_rollout_ref.actor.clip_ratio_high=0.28 \
    actor_rollout_ref.rollout.n=16 \
    actor_rollout_ref.rollout.calculate_log_probs=True \
    algorithm.adv_estimator=grpo \
    algorithm.rollout_correction.bypass_mode=True \
    rollout.total_rollout_steps=$((512 * 100)) rollout.test_freq=20 \
    rollout.n=8 rollout.nnodes=1 rollout.n_gpus_per_node=8 \
    async_training.staleness_threshold="${threshold}" \
    async_training.trigger_parameter_sync_step=4 \
    async_training.require_batches=4 \
    async_training.partial_rollout=True "$@"
