"""`make bench-chat`: starts what is measured, beside what it is measured against. The measuring is `training.bench`."""
