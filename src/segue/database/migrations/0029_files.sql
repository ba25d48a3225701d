-- Files in the database: where several machines share one, each of them reads the same bytes and deletes them with their
-- row. SQLite has the tables, too; its files are in the data folder.

-- The bytes of a file. `begun` is when it was begun, null once all of it is here.
create table file_contents (
  id {key} primary key,
  begun {real}
) {strict};
create index file_contents_begun on file_contents (begun) where begun is not null;

create table file_chunks (
  content {key} not null references file_contents (id) on delete cascade,
  n {int} not null,
  bytes {bytes} not null,
  primary key (content, n)
) {strict};
-- only: postgres
-- Most files are compressed already.
alter table file_chunks alter column bytes set storage external;
-- end

-- A whole file by its path: `files/AB/DIGEST`, or `scheduled/ID/TIME.md`. `kept` is when it was kept last.
create table files (
  path {key} primary key,
  content {key} not null references file_contents (id),
  size {int} not null,
  kept {real} not null
) {strict};
create unique index files_content on files (content);
create index files_kept on files (kept);
