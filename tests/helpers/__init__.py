"""What several tests share: small models, data, trainings and traces, and files that are damaged."""
