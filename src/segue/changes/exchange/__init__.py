"""The exchange: turns, deliveries, handoffs, schedules and whoever holds them."""
