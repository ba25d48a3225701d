"""The database: two drivers that run the changes, the SQL they run, and the migrations."""
