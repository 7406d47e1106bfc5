SELECT name, current_setting(name) FROM pg_settings WHERE name = ANY ($1::text[])
