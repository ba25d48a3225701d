"""Files: the bytes that come and go with messages, where they are stored, and how long they stay."""
