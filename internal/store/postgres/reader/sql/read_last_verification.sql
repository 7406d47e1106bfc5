SELECT v.started_at, v.finished_at, v.keys, v.outputs, v.differences, v.quiesced, v.deep, v.audit, v.status, v.boundary, v.detail
FROM amends.verifications AS v WHERE v.namespace_id = $1 AND v.verification_id IN (
    (SELECT max(l.verification_id) FROM amends.verifications AS l WHERE l.namespace_id = $1),
    (SELECT c.verification_id FROM amends.verifications AS c WHERE c.namespace_id = $1
        AND c.status IN ('DRIFT', 'BLOCKED', 'PASS') ORDER BY c.verification_id DESC LIMIT 1),
    (SELECT d.verification_id FROM amends.verifications AS d WHERE d.namespace_id = $1 AND d.deep
        AND d.status IN ('DRIFT', 'BLOCKED', 'PASS') ORDER BY d.verification_id DESC LIMIT 1))
ORDER BY v.status = 'DRIFT' DESC, v.verification_id DESC LIMIT 1
