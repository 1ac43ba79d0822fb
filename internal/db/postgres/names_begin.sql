-- The beginning of migration 7, which may run again after an interruption. Names as
-- db.FoldName folds them, for the list by name. Pets from before don't have one yet.
ALTER TABLE pets ADD COLUMN IF NOT EXISTS folded_name text COLLATE "C";

-- Versions before this one don't store folded names: from now on they can only read. The
-- code makes them respond that the store is unavailable.
CREATE OR REPLACE FUNCTION animalstore_refuse_older() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'a newer animalstore has updated this database: run that version'
    USING ERRCODE = 'read_only_sql_transaction';
END
$$;

DO $$
DECLARE
  changed text;
BEGIN
  FOREACH changed IN ARRAY ARRAY['pets', 'orders', 'categories', 'keys', 'key_secrets', 'limit_states'] LOOP
    EXECUTE format('DROP TRIGGER IF EXISTS refuse_older ON %I', changed);
    EXECUTE format('CREATE TRIGGER refuse_older BEFORE INSERT OR UPDATE OR DELETE ON %I FOR EACH STATEMENT
      WHEN (coalesce(nullif(current_setting(''animalstore.version'', true), ''''), ''0'')::int < 7)
      EXECUTE FUNCTION animalstore_refuse_older()', changed);
  END LOOP;
END
$$;
