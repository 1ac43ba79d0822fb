// Creates a database and prints an API key.
//
// Rows are lines of name, category and status between tabs; ids count from 1.
import { createHash, randomBytes } from 'node:crypto'
import { createInterface } from 'node:readline'
import { open, schema, indexes } from './store.js'

const db = open(process.argv[3])
db.pragma('synchronous = OFF') // an interrupted seed is started over
db.exec(schema)

const key = randomBytes(24).toString('base64url')
db.prepare('INSERT INTO keys (hash) VALUES (?)').run(createHash('sha256').update(key).digest())

const add = db.prepare('INSERT INTO pets (name, category_id, status) VALUES (?, ?, ?)')
db.exec('BEGIN')
for await (const line of createInterface({ input: process.stdin })) {
  const [name, category, status] = line.split('\t')
  add.run(name, Number(category), status)
}
db.exec('COMMIT')
db.exec(indexes)
db.pragma('wal_checkpoint(TRUNCATE)')
db.close()
console.log(key)
