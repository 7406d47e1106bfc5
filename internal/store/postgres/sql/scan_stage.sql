SET LOCAL enable_seqscan = on
