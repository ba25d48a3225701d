-- When other people came to read a place: what was asked there before isn't answered there.
alter table addresses add column afresh {real};
