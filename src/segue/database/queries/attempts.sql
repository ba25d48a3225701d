-- name: mark
-- What is written from here on can be taken back.
savepoint mark;

-- name: back_to_mark
-- What was written since the mark is taken back; locks that were taken before it stay.
rollback to mark;

-- name: forget_mark
-- What was written since the mark belongs to the transaction.
release mark;
