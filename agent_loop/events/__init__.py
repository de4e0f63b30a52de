"""What happens, and how others hear of it: durable facts, live moments, the bus between them."""
