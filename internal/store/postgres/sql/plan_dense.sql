-- For replace_staged_dense, which is planned each time: the staged rows are hashed, and the stored rows of their keys and days
-- read in the order in which they lie, by the index or by the table, whichever is less.
SELECT set_config('plan_cache_mode', 'force_custom_plan', true), set_config('enable_seqscan', 'on', true), set_config('enable_hashjoin', 'on', true),
       set_config('enable_nestloop', 'off', true), set_config('random_page_cost', '1.1', true), set_config('work_mem', '64MB', true)
