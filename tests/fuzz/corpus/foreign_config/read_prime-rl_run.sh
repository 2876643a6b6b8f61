uv run rl @ math_stage.toml --max_steps 50 --orchestrator.batch_size 256
