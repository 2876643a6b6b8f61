#!/bin/bash
# Values that only a run could know are told, and never guessed.
MODEL=Qwen/Qwen3-8B
LR=1e-6
if [ "$1" = "big" ]; then
  MODEL=Qwen/Qwen3-32B
fi
while [[ $# -gt 0 ]]; do
  case "$1" in
    --lr) LR="$2"; shift 2 ;;
  esac
done
[ -n "$FAST" ] && BATCH=64
NODES=$(scontrol show hostnames | wc -l)
cat <<README
data.train_batch_size=9999 is not an argument of anything
README
python3 -m verl.trainer.main_ppo \
  data.train_files=/data/math/train.parquet data.val_files=[] \
  data.train_batch_size=$BATCH \
  actor_rollout_ref.model.path=$MODEL \
  actor_rollout_ref.actor.optim.lr=$LR \
  actor_rollout_ref.rollout.n=${N:-8} \
  actor_rollout_ref.actor.ppo_mini_batch_size=$MINI \
  trainer.nnodes=$NODES \
  algorithm.adv_estimator=grpo algorithm.norm_adv_by_std_in_grpo=False \
  'data.max_response_length=2048' data.max_prompt_length="1024" --flag-of-nobody
