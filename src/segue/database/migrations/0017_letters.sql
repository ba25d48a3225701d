-- When somebody wants a dead letter to be taken in again; the gateway does it, and then it is `retried`.
alter table letters add column wanted {real};
