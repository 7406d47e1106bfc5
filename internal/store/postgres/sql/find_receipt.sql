SELECT next_sequence, output_offset FROM amends.receipts WHERE namespace_id = $1 AND partition = $2 AND first_sequence = $3
