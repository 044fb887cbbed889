"""netgate: is the new one worse? Two configurations, measured in short slots by turns, and judged."""
