//! What the server refuses: each attack as it would be sent.

use crate::served::{Answered, Served};
use crate::support::Scene;

fn scene() -> Scene {
    let scene = Scene::scripted("answers: [{ text: '<script>alert(1)</script> done' }]");
    assert_eq!(scene.provost(&["run", "<img src=x onerror=alert(1)> \u{202e}evil"]).status, 0);
    scene
}

#[track_caller]
fn refused(answered: &Answered, status: u16) {
    assert_eq!(answered.status, status, "{answered:?}");
    assert_eq!(answered.header("content-type"), Some("application/problem+json"), "{answered:?}");
    assert_eq!(answered.json()["status"], status);
    safe_headers(answered);
}

#[track_caller]
fn safe_headers(answered: &Answered) {
    let policy = answered.header("content-security-policy").unwrap();
    for part in ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'"] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(answered.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(answered.header("cross-origin-resource-policy"), Some("same-origin"));
    assert_eq!(answered.header("access-control-allow-origin"), None);
}

#[test]
fn nothing_is_answered_without_a_token() {
    let scene = scene();
    let served = Served::start(&scene);
    let host = format!("127.0.0.1:{}", served.port);
    for path in ["/", "/inbox", "/v1/runs", "/v1/openapi.json", "/metrics", "/nowhere", "/live/home"] {
        let answered = served.exact("GET", path, &[("host", &host)], "");
        refused(&answered, 401);
        assert_eq!(answered.header("www-authenticate"), Some("bearer"));
    }
    for wrong in ["Bearer ", "Bearer 00", "Basic eDp4", &format!("Bearer {}0", served.token), &served.token] {
        refused(&served.exact("GET", "/v1/runs", &[("host", &host), ("authorization", wrong)], ""), 401);
    }
    let in_query = format!("/v1/runs?token={}&access_token={}", served.token, served.token);
    refused(&served.exact("GET", &in_query, &[("host", &host)], ""), 401);
    assert_eq!(served.get("/v1/runs").status, 200);
}

#[test]
fn another_name_for_this_machine_is_refused_even_with_the_token() {
    let scene = scene();
    let served = Served::start(&scene);
    let port = served.port;
    let token = format!("Bearer {}", served.token);
    for host in [
        format!("evil.example:{port}"),
        format!("127.0.0.1.evil.example:{port}"),
        "127.0.0.1".to_owned(),
        format!("x.localhost:{port}"),
        String::new(),
    ] {
        refused(&served.exact("GET", "/v1/runs", &[("host", &host), ("authorization", &token)], ""), 421);
    }
    let twice = [("host", "evil.example"), ("host", &format!("127.0.0.1:{port}")), ("authorization", &token)];
    assert_ne!(served.exact("GET", "/v1/runs", &twice, "").status, 200);
}

#[test]
fn pages_of_other_sites_are_refused_whatever_they_send() {
    let scene = scene();
    let served = Served::start(&scene);
    let run = scene.last_run();
    let cancel = format!("/v1/runs/{run}/cancel");
    let json = ("content-type", "application/json");
    for origin in
        ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1", "http://localhost"]
    {
        refused(&served.send("POST", &cancel, &[json, ("origin", origin)], "{}"), 403);
        refused(&served.send("GET", "/v1/runs", &[("origin", origin)], ""), 403);
    }
    for site in ["cross-site", "same-site", "odd"] {
        refused(&served.send("POST", &cancel, &[json, ("sec-fetch-site", site)], "{}"), 403);
        refused(&served.send("GET", &format!("/v1/runs/{run}/events"), &[("sec-fetch-site", site)], ""), 403);
    }
    refused(&served.send("POST", &cancel, &[json, ("sec-fetch-site", "none")], "{}"), 403);
    // What a form of a page can send without being asked.
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""] {
        refused(&served.send("POST", &cancel, &[("content-type", kind)], "{}"), 415);
    }
    let preflight = [("origin", "http://evil.example"), ("access-control-request-method", "POST")];
    refused(&served.send("OPTIONS", &cancel, &preflight, ""), 403);
}

#[test]
fn a_link_signs_one_browser_in_once_and_its_cookie_is_good_for_the_pages_name_only() {
    let scene = scene();
    let served = Served::start(&scene);
    let entered = served.enter();
    assert_eq!((entered.status, entered.header("location")), (303, Some("/")));
    let cookie = entered.header("set-cookie").unwrap();
    for part in ["httponly", "samesite=strict", "path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains("domain"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let again = served.enter();
    assert_eq!((again.status, again.header("set-cookie")), (401, None), "it is used up");
    safe_headers(&again);

    let page = ("host", served.page.as_str());
    let signed = ("cookie", cookie.as_str());
    let home = served.exact("GET", "/", &[page, signed], "");
    assert_eq!(home.status, 200, "{home:?}");
    safe_headers(&home);
    let other = format!("127.0.0.1:{}", served.port);
    refused(&served.exact("GET", "/", &[("host", &other), signed], ""), 401);

    let say = format!("/v1/runs/{}/pause", scene.last_run());
    let (json, origin) = (("content-type", "application/json"), format!("http://{}", served.page));
    let (origin, same) = (("origin", origin.as_str()), ("sec-fetch-site", "same-origin"));
    refused(&served.exact("POST", &say, &[page, signed, json], "{}"), 403);
    refused(&served.exact("POST", &say, &[page, signed, json, origin], "{}"), 403);
    refused(&served.exact("POST", &say, &[page, signed, json, same], "{}"), 403);
    // It has ended: the request is good, and changes nothing.
    refused(&served.exact("POST", &say, &[page, signed, json, origin, same], "{}"), 409);
}

#[test]
fn what_models_and_users_wrote_is_inert_on_the_page() {
    let scene = scene();
    let served = Served::start(&scene);
    for path in ["/".to_owned(), format!("/runs/{}", scene.last_run())] {
        let page = served.get(&path);
        assert_eq!(page.status, 200, "{page:?}");
        assert!(!page.body.contains("<img src=x") && !page.body.contains("<script>alert"), "{}", page.body);
        assert!(page.body.contains("&lt;img src=x onerror=alert(1)&gt; \\u{202e}evil"), "{}", page.body);
        assert!(!page.body.contains(" style="), "styles in attributes are refused by the policy");
    }
}

#[test]
fn limits_are_kept() {
    let scene = scene();
    let served = Served::start(&scene);
    let say = format!("/v1/runs/{}/say", scene.last_run());
    refused(&served.post(&say, &format!("{{\"text\":\"{}\"}}", "x".repeat(70_000))), 413);
    refused(&served.post(&say, "{\"text\":\"x\",\"odd\":1}"), 400);
    refused(&served.post(&say, "{\"text\":\"  \"}"), 422);
    refused(&served.post("/v1/runs/zzzz/say", "{\"text\":\"x\"}"), 404);
    refused(&served.get("/v1/runs?limit=0"), 400);
    refused(&served.get("/v1/runs?odd=1"), 400);
    refused(&served.send("GET", "/v1/runs", &[("x-long", &"x".repeat(20_000))], ""), 431);
}

#[test]
fn other_methods_are_told_which_ones_there_are() {
    let scene = scene();
    let served = Served::start(&scene);
    let document = served.get("/v1/openapi.json").json();
    let described = document["paths"].as_object().unwrap().iter();
    let described = described.map(|(path, methods)| {
        let path = path.replace("{run}", &scene.last_run()).replace("{agent}", "0").replace("{asked}", "1");
        let allowed = methods.as_object().unwrap().keys().map(String::as_str);
        let allowed =
            allowed.flat_map(|method| if method == "get" { vec!["get", "head"] } else { vec![method] });
        (path, allowed.map(str::to_owned).collect::<Vec<_>>())
    });
    let pages = ["/", "/inbox", "/metrics", "/live/home", "/assets/page.js"];
    let pages = pages.map(|path| (path.to_owned(), vec!["get".to_owned(), "head".to_owned()]));
    for (path, mut allowed) in described.chain(pages) {
        allowed.sort();
        for method in ["GET", "POST", "DELETE", "PUT", "PATCH", "TRACE", "OPTIONS"] {
            if allowed.contains(&method.to_lowercase()) {
                continue;
            }
            let answered = served.send(method, &path, &[], "");
            refused(&answered, 405);
            let mut told = answered.header("allow").unwrap().split(',').map(str::trim).collect::<Vec<_>>();
            told.sort_unstable();
            assert_eq!(told, allowed, "{method} {path}");
        }
    }
}

/// A program of a run that has found the token may look, and act no more than it may by command.
#[cfg(target_os = "linux")]
#[test]
fn what_a_run_has_started_can_look_and_can_t_act() {
    let script = "import socket, sys\n\
        port, token, method, path = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]\n\
        s = socket.create_connection(('127.0.0.1', port))\n\
        body = '{}'\n\
        s.sendall(f'{method} {path} HTTP/1.1\\r\\nHost: 127.0.0.1:{port}\\r\\nAuthorization: Bearer {token}\\r\\nContent-Type: application/json\\r\\nConnection: close\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n{body}'.encode())\n\
        print(s.recv(65536).decode().split(' ')[1])\n";
    let scene = Scene::scripted(
        "answers:\n  - tools: [{ shell: { command: 'setsid sh ../attack.sh > answers 2>&1' } }]\n  - text: done\n",
    );
    scene.write("send.py", script);
    let served = Served::start(&scene);
    let (port, token) = (served.port, &served.token);
    let attack = format!(
        "python3 ../send.py {port} {token} GET /v1/runs\npython3 ../send.py {port} {token} POST /v1/runs/zzzz/cancel\n"
    );
    scene.write("attack.sh", &attack);
    assert_eq!(scene.provost(&["run", "x"]).status, 0);
    assert_eq!(std::fs::read_to_string(scene.path("work/answers")).unwrap(), "200\n403\n");
    assert_eq!(served.post("/v1/runs/zzzz/cancel", "{}").status, 404, "others are not refused");
}
