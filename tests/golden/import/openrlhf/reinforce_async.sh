#!/bin/bash
SCRIPT_DIR="$(dirname "$0")"
MODEL_PATH="/models/Qwen3-4B"
DATASET_PATH="/data/dapo-math-17k.jsonl"
SAVE_PATH="/exp/qwen3-4b"

ROLLOUT_ARGS=(
   --remote_rm_url http://127.0.0.1:5000/get_reward
   --prompt_data ${DATASET_PATH}
   --input_key prompt
   --label_key label
   --prompt_max_len 2048
   --generate_max_len 8192
   # --max_samples 100
   --rollout_batch_size 128
   --n_samples_per_prompt 8
   --train_batch_size 1024
)
OPTIMIZER_ARGS=(
   --advantage_estimator reinforce_baseline
   --actor_learning_rate 5e-7
   --init_kl_coef 1e-5
   --use_kl_loss
   --kl_estimator k2
   --enable_vllm_is_correction
   --vllm_is_truncated_threshold 0.5 5.0
   --vllm_is_correction_type icepop
)
LOG_ARGS=(
   --use_tensorboard ${SAVE_PATH}/runs
   --use_wandb sekret
   --wandb_project rl
   --eval_steps 10
   --eval_dataset /data/aime.jsonl
)

ray job submit --address="http://127.0.0.1:8265" \
   -- python3 -m openrlhf.cli.train_ppo_ray \
   --pretrain ${MODEL_PATH} \
   --save_path ${SAVE_PATH} \
   --async_train --async_queue_size 1 --partial_rollout \
   ${ROLLOUT_ARGS[@]} \
   ${OPTIMIZER_ARGS[@]} \
   ${LOG_ARGS[@]}
