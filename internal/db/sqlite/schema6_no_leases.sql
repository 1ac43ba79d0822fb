-- Only the server that holds the file's lock claims deliveries, and it keeps its claims in
-- memory. Nothing reads a stored lease.
DROP INDEX deliveries_leased;
ALTER TABLE deliveries DROP COLUMN leased_until;
