torchrun --nproc_per_node 4 train_grpo.py \
  --model_name_or_path=Qwen/Qwen3-4B --dataset_name=trl-lib/DeepMath-103K \
  --per-device-train-batch-size 8 --gradient-accumulation-steps 8 --num-generations 16 \
  --max-completion-length 4096 --loss-type cispo --epsilon-high 5.0 \
  --reward-funcs accuracy_reward get_soft_overlong_punishment \
  --reward-weights 1.0 0.2 --scale-rewards batch --top-k 20 --repetition-penalty 1.1 \
  --num-train-epochs 1.5 --report-to none --bf16 --use-vllm --vllm-mode server \
  --top-entropy-quantile 0.2
