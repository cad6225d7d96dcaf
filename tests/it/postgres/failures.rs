//! Faults of PostgreSQL servers: each is named with its remedy, and no answer is wrong.

use std::time::Duration;

use fetchwell_postgres::{PostgresPool, PostgresStore, PostgresUrl};
use fetchwell_source::contract::{PostgresError, StoreError};
use fetchwell_source::{BoundSource, SourceError};

use crate::sources::conformance::records_of;
use crate::support::stores::postgres::{Database, ROLE_PASSWORD, authority_file, connect, store};
use crate::support::{binary, fetchwell, stderr};

const LINE: &str = "{\"stream\":\"s\",\"key\":\"k\",\"data\":{\"secret_text\":\"hunter2\"}}\n";

/// Returns the error of a read of the store at a URL.
async fn error_of(url: &str) -> PostgresError {
    let source: BoundSource = store(url).into();
    let error = source.schema().await.unwrap_err();
    let SourceError::Store(StoreError::Postgres(error)) = error else { panic!("{error:?}") };
    let shown = format!("{error} {error:?}");
    assert!(!shown.contains(ROLE_PASSWORD) && !shown.contains("fetchwell-test"), "{shown}");
    error
}

#[tokio::test]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn refused_connections_are_named_with_their_remedy() {
    let database = Database::create().await;
    let wrong = database.url.replace("fetchwell-test", "hunter2");
    let error = error_of(&wrong).await;
    assert!(matches!(error, PostgresError::Password { .. }), "{error:?}");
    assert!(error.to_string().contains("PGPASSFILE") && !error.to_string().contains("hunter2"), "{error}");

    let missing = database.url.replace(&database.name, "no_such_database");
    assert!(matches!(error_of(&missing).await, PostgresError::NoDatabase { .. }));

    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let nowhere = format!("postgres://u:p@127.0.0.1:{port}/d");
    let error = error_of(&nowhere).await;
    assert!(matches!(error, PostgresError::Unreachable { .. }), "{error:?}");

    let limited = database.role("ALTER ROLE ROLE_NAME CONNECTION LIMIT 0").await;
    assert!(matches!(error_of(&limited).await, PostgresError::TooManyConnections { .. }));

    let client = database.client().await;
    client
        .batch_execute(
            "CREATE SCHEMA fetchwell; CREATE TABLE fetchwell.migrations (version integer PRIMARY KEY);
        INSERT INTO fetchwell.migrations VALUES (99)",
        )
        .await
        .unwrap();
    let error = error_of(&database.url).await;
    assert!(matches!(error, PostgresError::Newer { found: 99, .. }), "{error:?}");
    assert!(error.to_string().contains("upgrade fetchwell"));
}

#[tokio::test]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn a_missing_password_is_found_in_the_password_file() {
    let database = Database::create().await;
    database.import("c", LINE);
    let bare = database.url.replace(":fetchwell-test", "");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pgpass");
    let connections = |file: &std::path::Path| {
        binary().args(["connections", "--store", &bare]).env("PGPASSFILE", file).output().unwrap()
    };
    let without = connections(&file);
    assert!(stderr(&without).contains("PGPASSFILE"), "{without:?}");
    let host = database.authority.replace(':', "_");
    std::fs::write(&file, format!("# {host}\n127.0.0.1:*:*:postgres:fetchwell-test\n")).unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        let exposed = connections(&file);
        assert!(stderr(&exposed).contains("chmod 600"), "{exposed:?}");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    assert!(connections(&file).status.success());
    let variable = database.url.replace("fetchwell-test", "env:STORE_PASSWORD");
    let by_variable = binary()
        .args(["connections", "--store", &variable])
        .env("STORE_PASSWORD", "fetchwell-test")
        .output()
        .unwrap();
    assert!(by_variable.status.success(), "{by_variable:?}");
    let unset = fetchwell(["connections", "--store", &variable]);
    assert!(stderr(&unset).contains("STORE_PASSWORD"), "{unset:?}");
}

#[tokio::test]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn roles_that_may_only_read_are_served() {
    let database = Database::create().await;
    let url = database.role("").await;
    // There are no tables, and the role may not create them.
    let error = error_of(&url).await;
    assert!(matches!(error, PostgresError::NoTables { .. }), "{error:?}");
    database.import("c", LINE);
    assert!(matches!(error_of(&url).await, PostgresError::NoPermission { .. }));
    let role = url.trim_start_matches("postgres://").split(':').next().unwrap();
    let grant = format!(
        "GRANT USAGE ON SCHEMA fetchwell TO {role}; GRANT SELECT ON ALL TABLES IN SCHEMA fetchwell TO {role}"
    );
    database.client().await.batch_execute(&grant).await.unwrap();
    let source: BoundSource = store(&url).into();
    assert_eq!(source.records(&records_of("s")).await.unwrap().rows.len(), 1);
    assert!(store(&url).state().await.unwrap().is_read_only);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("records.ndjson");
    std::fs::write(&file, LINE).unwrap();
    let import =
        fetchwell(["import", "records", file.to_str().unwrap(), "--store", &url, "--connection", "d"]);
    assert!(!import.status.success());
    assert!(stderr(&import).contains("INSERT") && !stderr(&import).contains("hunter2"), "{import:?}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn statements_end_at_the_deadline_and_with_their_call() {
    let database = Database::create().await;
    database.import("c", LINE);
    let mut blocker = database.client().await;
    let transaction = blocker.transaction().await.unwrap();
    transaction.batch_execute("LOCK TABLE fetchwell.records IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let admin = connect(&database.url).await;
    let waiting = async || -> i64 {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
        admin.query_one(sql, &[]).await.unwrap().get(0)
    };

    let url: PostgresUrl = database.url.parse().unwrap();
    let fetchwell_postgres::PasswordPlace::Url(password) = url.password().clone() else { panic!() };
    let pool = PostgresPool::new(&url, Some(&password), None).unwrap();
    let hasty = PostgresStore::new("store".parse().unwrap(), pool, Duration::from_millis(300));
    let hasty: BoundSource = hasty.into();
    let late = hasty.records(&records_of("s")).await.unwrap_err();
    assert!(matches!(late, SourceError::Timeout { .. }), "{late:?}");

    let patient: BoundSource = database.store().into();
    let call = tokio::spawn({
        let patient = patient.clone();
        async move { patient.records(&records_of("s")).await.map(drop) }
    });
    while waiting().await == 0 {
        tokio::task::yield_now().await;
    }
    call.abort();
    // The statement would wait for 20 s. The test ends when it is cancelled.
    while waiting().await > 0 {
        tokio::task::yield_now().await;
    }
    transaction.rollback().await.unwrap();
    assert_eq!(patient.records(&records_of("s")).await.unwrap().rows.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn a_killed_backend_is_an_error_of_its_call_only() {
    let database = Database::create().await;
    database.import("c", LINE);
    let source: BoundSource = database.store().into();
    source.schema().await.unwrap();
    let mut blocker = database.client().await;
    let transaction = blocker.transaction().await.unwrap();
    transaction.batch_execute("LOCK TABLE fetchwell.records IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let call = tokio::spawn({
        let source = source.clone();
        async move { source.records(&records_of("s")).await.map(drop) }
    });
    let admin = connect(&database.url).await;
    let kill = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                WHERE wait_event_type = 'Lock' AND datname = current_database()";
    while admin.query_one(kill, &[]).await.unwrap().get::<_, i64>(0) == 0 {
        tokio::task::yield_now().await;
    }
    let killed = call.await.unwrap().unwrap_err();
    assert!(
        matches!(&killed, SourceError::Store(StoreError::Postgres(PostgresError::Stopping { .. }))),
        "{killed:?}"
    );
    assert!(killed.is_source_failure());
    transaction.rollback().await.unwrap();
    assert_eq!(source.records(&records_of("s")).await.unwrap().rows.len(), 1);
}

#[tokio::test]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn a_database_that_is_not_in_utf_8_is_refused() {
    let database = Database::create_with("ENCODING 'SQL_ASCII' TEMPLATE template0").await;
    let error = error_of(&database.url).await;
    assert!(
        matches!(&error, PostgresError::Encoding { encoding, .. } if encoding == "SQL_ASCII"),
        "{error:?}"
    );
}

#[tokio::test]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn connections_are_encrypted_as_sslmode_says() {
    let database = Database::create().await;
    let Some(authority) = authority_file() else {
        // This server has no TLS.
        let error = error_of(&format!("{}?sslmode=require", database.url)).await;
        assert!(matches!(&error, PostgresError::Tls { mode: "require", .. }), "{error:?}");
        assert!(!store(&format!("{}?sslmode=prefer", database.url)).state().await.unwrap().is_encrypted);
        return;
    };
    let encrypted = async |parameters: String| {
        store(&format!("{}?{parameters}", database.url)).state().await.map(|state| state.is_encrypted)
    };
    assert!(!encrypted("sslmode=disable".to_owned()).await.unwrap());
    for mode in ["prefer", "require"] {
        assert!(encrypted(format!("sslmode={mode}")).await.unwrap(), "{mode}");
    }
    assert!(encrypted(format!("sslmode=verify-ca&sslrootcert={authority}")).await.unwrap());
    assert!(encrypted(format!("sslmode=verify-full&sslrootcert={authority}&host=localhost")).await.unwrap());
    // The certificate is of an unknown authority, or not for this host.
    for parameters in ["sslmode=verify-ca".to_owned(), format!("sslmode=verify-full&sslrootcert={authority}")]
    {
        let error = error_of(&format!("{}?{parameters}", database.url)).await;
        assert!(matches!(error, PostgresError::Tls { .. }), "{parameters}: {error:?}");
    }
    let role = "tls_only";
    let create =
        format!("DROP ROLE IF EXISTS {role}; CREATE ROLE {role} SUPERUSER LOGIN PASSWORD '{ROLE_PASSWORD}'");
    database.client().await.batch_execute(&create).await.unwrap();
    let url = format!("postgres://{role}:{ROLE_PASSWORD}@{}/{}", database.authority, database.name);
    let error = error_of(&format!("{url}?sslmode=disable")).await;
    assert!(error.to_string().contains("sslmode=require"), "{error}");
    assert!(store(&format!("{url}?sslmode=require")).state().await.unwrap().is_encrypted);
}

#[tokio::test]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn doctor_names_the_state_of_the_database() {
    let database = Database::create().await;
    let doctor = |url: &str| {
        let output = fetchwell(["doctor", "--store", url]);
        format!("{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output))
    };
    let shown = doctor(&database.url);
    assert!(shown.contains("PostgreSQL 1") && shown.contains("tables of version 6"), "{shown}");
    assert!(shown.contains("pgvector"), "{shown}");
    assert!(!shown.contains("fetchwell-test"), "{shown}");
    let shown = doctor(&database.url.replace("fetchwell-test", "hunter2"));
    assert!(shown.contains("rejects the password") && !shown.contains("hunter2"), "{shown}");
}

/// Any number of processes can start on an empty database.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL servers: tests/postgres/run"]
async fn stores_opened_at_once_create_the_tables_once() {
    for _ in 0..8 {
        let database = Database::create().await;
        let opened = (0..6).map(|_| {
            let store = database.store();
            tokio::spawn(async move { store.state().await.map(|state| state.tables) })
        });
        for opened in futures_util::future::join_all(opened).await {
            assert_eq!(opened.unwrap().unwrap(), 6);
        }
    }
}
