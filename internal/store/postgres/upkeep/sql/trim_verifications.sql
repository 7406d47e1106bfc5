-- Of an audit's rows the newest $2 stay, and those that the reading of the last verification takes. At most $3 go at once.
DELETE FROM amends.verifications AS v WHERE v.namespace_id = $1 AND v.verification_id = ANY (ARRAY(
    SELECT o.verification_id FROM amends.verifications AS o WHERE o.namespace_id = $1 AND o.audit
        AND o.verification_id <= (SELECT n.verification_id FROM amends.verifications AS n WHERE n.namespace_id = $1 AND n.audit
            ORDER BY n.verification_id DESC OFFSET $2::bigint LIMIT 1)
        AND o.verification_id <> coalesce((SELECT c.verification_id FROM amends.verifications AS c WHERE c.namespace_id = $1
            AND c.status IN ('DRIFT', 'BLOCKED', 'PASS') ORDER BY c.verification_id DESC LIMIT 1), 0)
        AND o.verification_id <> coalesce((SELECT d.verification_id FROM amends.verifications AS d WHERE d.namespace_id = $1 AND d.deep
            AND d.status IN ('DRIFT', 'BLOCKED', 'PASS') ORDER BY d.verification_id DESC LIMIT 1), 0)
    ORDER BY o.verification_id LIMIT $3::bigint))
