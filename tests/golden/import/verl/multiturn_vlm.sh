ulimit -n 65535
PROJECT_DIR="$(pwd)"
CONFIG_PATH="$PROJECT_DIR/examples/config"
python3 -m verl.trainer.main_ppo \
    --config-path="$CONFIG_PATH" \
    --config-name='gsm8k_multiturn_grpo' \
    algorithm.adv_estimator=grpo \
    data.train_files=/data/geo3k/train.parquet \
    data.image_key=images \
    data.return_raw_chat=True \
    actor_rollout_ref.model.path=/models/Qwen2.5-VL-7B-Instruct \
    actor_rollout_ref.rollout.n=16 \
    actor_rollout_ref.rollout.name=sglang \
    actor_rollout_ref.rollout.multi_turn.enable=True \
    actor_rollout_ref.rollout.multi_turn.tool_config_path="$PROJECT_DIR/tools.yaml" \
    +actor_rollout_ref.rollout.engine_kwargs.vllm.disable_mm_preprocessor_cache=True \
    actor_rollout_ref.actor.strange_knob=7 \
    ~trainer.val_before_train \
    trainer.total_epochs=15
