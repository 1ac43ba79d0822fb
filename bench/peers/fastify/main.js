// node main.js seed FILE < rows: creates FILE and prints an API key.
// node main.js serve FILE HOST:PORT: serves it with a process for each core.
await import(process.argv[2] === 'seed' ? './seed.js' : './server.js')
