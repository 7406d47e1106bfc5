COPY pg_temp.view_stage FROM STDIN (FORMAT binary)
