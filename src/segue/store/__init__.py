"""What Segue remembers: SQL, the transactions that use it, and the two databases that run them."""
