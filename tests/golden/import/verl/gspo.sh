#!/usr/bin/env bash
#SBATCH --gres=gpu:8
set -xeuo pipefail

eval "$(conda shell.bash hook)"
export NNODES=${SLURM_JOB_NUM_NODES:-1}

adv_estimator=grpo
loss_mode=gspo
clip_low=0.0003  # of a whole sequence
clip_high=0.0004
prompt_len=$((1024 * 2))
response_len=$((1024 * 8))
overlong=$((1024 * 4))
MODEL=Qwen/Qwen2.5-3B-Instruct
exp_name="${loss_mode}-${clip_low}-$(basename $MODEL)"
train_files="['$HOME/data/gsm8k/train.parquet']"
test_files="['$HOME/data/gsm8k/test.parquet']"
offload=true

if [ "$PREPARE" = true ]; then
    python examples/data_preprocess/gsm8k.py --local_dir $HOME/data/gsm8k
fi

python3 -m verl.trainer.main_ppo \
    algorithm.adv_estimator=${adv_estimator} \
    actor_rollout_ref.actor.policy_loss.loss_mode=${loss_mode} \
    actor_rollout_ref.actor.loss_agg_mode="seq-mean-token-mean" \
    data.train_files="${train_files}" \
    data.val_files="${test_files}" \
    data.shuffle=true \
    data.prompt_key=prompt \
    data.truncation='error' \
    data.filter_overlong_prompts=true \
    data.train_batch_size=512 \
    data.max_prompt_length=${prompt_len} \
    data.max_response_length=${response_len} \
    actor_rollout_ref.rollout.n=16 \
    algorithm.use_kl_in_reward=false \
    algorithm.kl_ctrl.kl_coef=0.0 \
    actor_rollout_ref.actor.use_kl_loss=false \
    actor_rollout_ref.actor.kl_loss_coef=0.0 \
    actor_rollout_ref.actor.clip_ratio_low=${clip_low} \
    actor_rollout_ref.actor.clip_ratio_high=${clip_high} \
    actor_rollout_ref.actor.use_dynamic_bsz=true \
    actor_rollout_ref.actor.ppo_max_token_len_per_gpu=$(((prompt_len + response_len) * 2)) \
    actor_rollout_ref.rollout.mode=async \
    actor_rollout_ref.model.path="${MODEL}" \
    actor_rollout_ref.actor.optim.lr=1e-6 \
    actor_rollout_ref.actor.optim.lr_warmup_steps_ratio=0.05 \
    actor_rollout_ref.actor.optim.weight_decay=0.1 \
    actor_rollout_ref.actor.ppo_mini_batch_size=128 \
    actor_rollout_ref.actor.fsdp_config.param_offload=${offload} \
    actor_rollout_ref.actor.grad_clip=1.0 \
    actor_rollout_ref.rollout.max_num_batched_tokens=$((prompt_len + response_len)) \
    actor_rollout_ref.rollout.temperature=1.0 \
    actor_rollout_ref.rollout.top_k=-1 \
    actor_rollout_ref.rollout.val_kwargs.temperature=1.0 \
    actor_rollout_ref.rollout.val_kwargs.top_p=0.7 \
    actor_rollout_ref.rollout.val_kwargs.do_sample=true \
    actor_rollout_ref.rollout.val_kwargs.n=1 \
    reward_model.reward_manager=dapo \
    +reward_model.reward_kwargs.overlong_buffer_cfg.enable=false \
    +reward_model.reward_kwargs.overlong_buffer_cfg.len=${overlong} \
    +reward_model.reward_kwargs.max_resp_len=${response_len} \
    trainer.logger='["console","wandb"]' \
    trainer.experiment_name="${exp_name}" \
    trainer.nnodes="${NNODES}" \
    trainer.val_before_train=false \
    trainer.test_freq=10 \
    trainer.save_freq=10 \
    trainer.total_epochs=10 \
    trainer.total_training_steps=500 \
    trainer.resume_mode=auto $@
