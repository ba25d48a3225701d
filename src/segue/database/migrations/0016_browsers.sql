-- Browsers that signed out of the page, or were signed out: their cookies count no more.
create table signed_out (
  browser {key} primary key,
  at {real} not null
) {clustered};
