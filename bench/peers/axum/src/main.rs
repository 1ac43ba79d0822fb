//! Serves pets with axum and rusqlite, for the benchmark.
//!
//!     axum seed FILE < rows      creates FILE and prints an API key
//!     axum serve FILE ADDRESS
//!
//! Rows are lines of name, category and status between tabs; ids count from 1.
//!
//! Each worker thread reads directly, with its own connection: that takes
//! microseconds, less than handing it to another thread. Creates take turns on
//! one connection, away from the workers, since they wait for the disk. Each is
//! committed with its event. A request costs a SHA-256 of its key and a lookup in a
//! set of hashes that is read again each second, as in ours. There is no rate limit.

use std::cell::RefCell;
use std::collections::HashSet;
use std::error::Error;
use std::io::BufRead;
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

const SCHEMA: &str = "
  CREATE TABLE pets (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    name        TEXT    NOT NULL,
    category_id INTEGER NOT NULL,
    status      TEXT    NOT NULL
  ) STRICT;
  CREATE TABLE events (
    id         INTEGER PRIMARY KEY,
    type       TEXT    NOT NULL,
    subject_id INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    data       TEXT    NOT NULL -- the pet as JSON
  ) STRICT;
  CREATE INDEX events_by_subject ON events (subject_id);
  CREATE TABLE keys (
    hash BLOB PRIMARY KEY -- SHA-256
  ) STRICT, WITHOUT ROWID;";

// Created after the rows, which is faster. The first covers whole rows, like ours. The
// second is for finding pets by name.
const INDEXES: &str = "
  CREATE INDEX pets_by_status ON pets (status, id, category_id, name);
  CREATE INDEX pets_by_name ON pets (lower(name), id);";

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[1..] {
        ["seed", file] => seed(file),
        ["serve", file, address] => tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?
            .block_on(serve(file, address)),
        _ => Err("usage: axum seed FILE | serve FILE ADDRESS".into()),
    }
}

/// A commit is on disk, as with every other server.
fn open(file: &str) -> rusqlite::Result<Connection> {
    let db = Connection::open(file)?;
    db.execute_batch(
        "PRAGMA busy_timeout = 10000; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         PRAGMA cache_size = -32000; PRAGMA temp_store = MEMORY;",
    )?;
    Ok(db)
}

fn seed(file: &str) -> Result<()> {
    let mut db = open(file)?;
    db.execute_batch("PRAGMA synchronous = OFF")?; // an interrupted seed is started over
    db.execute_batch(SCHEMA)?;
    let mut random = [0u8; 24];
    std::io::Read::read_exact(&mut std::fs::File::open("/dev/urandom")?, &mut random)?;
    let key = URL_SAFE_NO_PAD.encode(random);
    db.execute("INSERT INTO keys (hash) VALUES (?)", [&Sha256::digest(&key)[..]])?;
    let tx = db.transaction()?;
    {
        let mut add = tx.prepare("INSERT INTO pets (name, category_id, status) VALUES (?, ?, ?)")?;
        for line in std::io::stdin().lock().lines() {
            let line = line?;
            let fields: Vec<&str> = line.split('\t').collect();
            add.execute(params![fields[0], fields[1].parse::<i64>()?, fields[2]])?;
        }
    }
    tx.commit()?;
    db.execute_batch(INDEXES)?;
    println!("{key}");
    Ok(())
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Available,
    Pending,
    Sold,
}

impl Status {
    fn name(self) -> &'static str {
        match self {
            Status::Available => "available",
            Status::Pending => "pending",
            Status::Sold => "sold",
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Pet {
    id: i64,
    name: String,
    category_id: i64,
    status: String,
}

impl Pet {
    fn read(row: &Row) -> rusqlite::Result<Pet> {
        Ok(Pet { id: row.get(0)?, name: row.get(1)?, category_id: row.get(2)?, status: row.get(3)? })
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NewPet {
    name: String,
    category_id: i64,
    status: Option<Status>,
}

#[derive(Deserialize)]
struct ListQuery {
    id: Option<i64>, // alone
    limit: Option<u8>,
    status: Option<Status>,
    cursor: Option<String>,
}

struct Store {
    file: String,
    writer: Mutex<Connection>,
    keys: RwLock<HashSet<[u8; 32]>>,
}

thread_local! {
    static READER: RefCell<Option<Connection>> = const { RefCell::new(None) };
}

impl Store {
    fn read<T>(&self, read: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> rusqlite::Result<T> {
        READER.with_borrow_mut(|reader| {
            if reader.is_none() {
                *reader = Some(open(&self.file)?);
            }
            read(reader.as_ref().unwrap())
        })
    }

    fn read_keys(&self) -> rusqlite::Result<()> {
        let keys = self.read(|db| {
            db.prepare_cached("SELECT hash FROM keys")?.query_map([], |row| row.get(0))?.collect()
        })?;
        *self.keys.write().unwrap() = keys;
        Ok(())
    }
}

async fn serve(file: &str, address: &str) -> Result<()> {
    let store = Arc::new(Store {
        file: file.to_string(),
        writer: Mutex::new(open(file)?),
        keys: RwLock::default(),
    });
    store.read_keys()?;
    let keys = store.clone();
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_secs(1));
            keys.read_keys().expect("read keys");
        }
    });
    let app = Router::new()
        .route("/v1/pets", get(list).post(create))
        .route("/v1/pets/{id}", get(one))
        .layer(middleware::from_fn_with_state(store.clone(), authenticate))
        .with_state(store);
    let listener = tokio::net::TcpListener::bind(address).await?;
    let mut stop = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        served = axum::serve(axum::serve::ListenerExt::tap_io(listener, |io| { let _ = io.set_nodelay(true); }), app).into_future() => served?,
        _ = stop.recv() => {}
    }
    Ok(())
}

async fn authenticate(State(store): State<Arc<Store>>, request: Request, next: Next) -> Response {
    let key = request.headers().get(header::AUTHORIZATION).and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
    let known = key.is_some_and(|key| store.keys.read().unwrap().contains(&Sha256::digest(key)[..]));
    if !known {
        return failure(StatusCode::UNAUTHORIZED, "invalid_api_key", "The API key is missing or wrong.");
    }
    next.run(request).await
}

fn failure(status: StatusCode, code: &str, message: &str) -> Response {
    let body = serde_json::json!({"code": code, "message": message, "status": status.as_u16()});
    (status, Json(body)).into_response()
}

fn broken(error: impl std::fmt::Display) -> Response {
    eprintln!("axum: {error}");
    failure(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", "Something went wrong.")
}

async fn list(State(store): State<Arc<Store>>, Query(query): Query<ListQuery>) -> Response {
    if let Some(id) = query.id {
        let found: rusqlite::Result<Vec<Pet>> = store.read(|db| {
            db.prepare_cached("SELECT id, name, category_id, status FROM pets WHERE id = ?")?.query_map([id], Pet::read)?.collect()
        });
        return found.map_or_else(broken, |pets| Json(pets).into_response());
    }
    let limit = query.limit.unwrap_or(20);
    let below = match &query.cursor {
        None => Some(i64::MAX),
        Some(cursor) => URL_SAFE_NO_PAD.decode(cursor).ok().and_then(|text| std::str::from_utf8(&text).ok()?.parse().ok()),
    };
    let Some(below) = below.filter(|_| (1..=100).contains(&limit)) else {
        return failure(StatusCode::BAD_REQUEST, "invalid_parameter", "limit is 1 to 100, cursor as it was handed out.");
    };
    let page: rusqlite::Result<Vec<Pet>> = store.read(|db| match query.status {
        None => db
            .prepare_cached("SELECT id, name, category_id, status FROM pets WHERE id < ? ORDER BY id DESC LIMIT ?")?
            .query_map(params![below, limit], Pet::read)?
            .collect(),
        Some(status) => db
            .prepare_cached("SELECT id, name, category_id, status FROM pets WHERE status = ? AND id < ? ORDER BY id DESC LIMIT ?")?
            .query_map(params![status.name(), below, limit], Pet::read)?
            .collect(),
    });
    let page = match page {
        Ok(page) => page,
        Err(error) => return broken(error),
    };
    let mut headers = HeaderMap::new();
    if page.len() == limit as usize {
        let next = URL_SAFE_NO_PAD.encode(page[page.len() - 1].id.to_string());
        let filter = query.status.map(|status| format!("&status={}", status.name())).unwrap_or_default();
        let link = format!("</v1/pets?limit={limit}{filter}&cursor={next}>; rel=\"next\"");
        headers.insert(header::LINK, HeaderValue::from_str(&link).expect("a link of visible characters"));
    }
    (headers, Json(page)).into_response()
}

async fn one(State(store): State<Arc<Store>>, Path(id): Path<i64>) -> Response {
    let found = store.read(|db| {
        db.prepare_cached("SELECT id, name, category_id, status FROM pets WHERE id = ?")?.query_row([id], Pet::read).optional()
    });
    match found {
        Ok(Some(pet)) => Json(pet).into_response(),
        Ok(None) => failure(StatusCode::NOT_FOUND, "pet_not_found", "There is no such pet."),
        Err(error) => broken(error),
    }
}

async fn create(State(store): State<Arc<Store>>, Json(new): Json<NewPet>) -> Response {
    let added = tokio::task::spawn_blocking(move || {
        let status = new.status.unwrap_or(Status::Available).name().to_string();
        let mut writer = store.writer.lock().unwrap();
        let tx = writer.transaction()?;
        tx.prepare_cached("INSERT INTO pets (name, category_id, status) VALUES (?, ?, ?)")?
            .execute(params![new.name, new.category_id, status])?;
        let pet = Pet { id: tx.last_insert_rowid(), name: new.name, category_id: new.category_id, status };
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis() as i64;
        tx.prepare_cached("INSERT INTO events (type, subject_id, created_at, data) VALUES ('pet.created', ?, ?, ?)")?
            .execute(params![pet.id, now, serde_json::to_string(&pet)?])?;
        tx.commit()?; // on disk when it returns
        Ok::<_, Box<dyn Error + Send + Sync>>(pet)
    });
    match added.await {
        Ok(Ok(pet)) => (StatusCode::CREATED, [(header::LOCATION, format!("/v1/pets/{}", pet.id))], Json(pet)).into_response(),
        Ok(Err(error)) => broken(error),
        Err(error) => broken(error),
    }
}
