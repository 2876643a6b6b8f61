#!/bin/bash
# The recipe beside this script, on seven processes, with two values of its own.
accelerate launch --config_file recipes/accelerate_configs/zero3.yaml \
    --num_processes=7 src/open_r1/grpo.py \
    --config open_r1.yaml \
    --per_device_train_batch_size 16 \
    --temperature 0.7 --vllm_mode colocate
