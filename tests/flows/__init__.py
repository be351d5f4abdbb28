"""What only the whole product can show: real processes, real Redis, real engine, encoder and worker."""
