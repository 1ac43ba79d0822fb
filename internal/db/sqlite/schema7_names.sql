-- Names as db.FoldName folds them, for the list by name. Pets from before this version
-- don't have one yet: see names_update.go.
ALTER TABLE pets ADD COLUMN folded_name TEXT NOT NULL DEFAULT '';

-- Exists until all pets have a folded name and the index is built.
CREATE TABLE names_update (
  id     INTEGER PRIMARY KEY CHECK (id = 1),
  folded INTEGER NOT NULL -- the highest id of a pet whose name is folded
) STRICT;

INSERT INTO names_update VALUES (1, 0);
