//! HTTP: from a request to a command and back.

mod admin;
mod authenticate;
mod reply;
mod xml;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use serde_json::json;

use crate::call::Call;
use crate::catalog;
use crate::cloud::Cloud;
use crate::error::ApiError;
use crate::params::Params;

pub(crate) use admin::answer as administer;
use authenticate::Identified;
use reply::{Format, Reply};

/// Most bytes of a request line.
const LONGEST_URI: usize = 8192;
/// Most bytes of a form.
const LARGEST_FORM: usize = 1 << 20;

/// A request that got past HTTP.
pub(crate) struct Query {
    pub(crate) params: Params,
    pub(crate) post: bool,
    /// Values of the cookies `JSESSIONID` and `sessionkey`.
    session: Option<String>,
    session_key: Option<String>,
}

impl Query {
    /// Reads a request, or says what the web server in front answers by itself.
    pub(crate) fn read(request: &Request<Bytes>) -> Result<Self, Box<Response<Bytes>>> {
        let uri = request.uri();
        if uri.path_and_query().map_or(0, |text| text.as_str().len()) > LONGEST_URI {
            return Err(html(
                StatusCode::URI_TOO_LONG,
                "<h1>Bad Message 414</h1><pre>reason: URI Too Long</pre>".to_owned(),
            ));
        }
        match uri.path() {
            "/" => return Err(empty(StatusCode::MOVED_PERMANENTLY, Some((header::LOCATION, "/client/")))),
            "/client" => return Err(empty(StatusCode::FOUND, Some((header::LOCATION, "/client/")))),
            "/client/api" | "/client/api/" => {}
            _ => return Err(not_found(uri.path())),
        }
        let post = match *request.method() {
            Method::GET => false,
            Method::POST => true,
            Method::HEAD => {
                return Err(empty(
                    StatusCode::OK,
                    Some((header::CONTENT_TYPE, "application/json;charset=utf-8")),
                ));
            }
            Method::OPTIONS => {
                return Err(empty(StatusCode::OK, Some((header::ALLOW, "GET, HEAD, POST, TRACE, OPTIONS"))));
            }
            _ => return Err(empty(StatusCode::METHOD_NOT_ALLOWED, None)),
        };
        if request.body().len() > LARGEST_FORM {
            return Err(not_found(uri.path()));
        }
        let kind = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let form = kind.is_none_or(|kind| kind.starts_with("application/x-www-form-urlencoded"));
        let body = if post && form { String::from_utf8_lossy(request.body()) } else { "".into() };
        let cookie = |name: &str| {
            request
                .headers()
                .get_all(header::COOKIE)
                .iter()
                .filter_map(|value| value.to_str().ok())
                .flat_map(|value| value.split(';'))
                .filter_map(|pair| pair.trim().split_once('='))
                .find(|(held, _)| *held == name)
                .map(|(_, value)| value.to_owned())
        };
        Ok(Self {
            params: Params::parse(uri.query().unwrap_or_default(), &body),
            post,
            session: cookie("JSESSIONID"),
            session_key: cookie("sessionkey"),
        })
    }

    /// The command that is asked for.
    pub(crate) fn command(&self) -> &str {
        self.params.get("command").unwrap_or_default()
    }

    fn format(&self) -> Format {
        match self.params.get("response") {
            Some(format) if format.eq_ignore_ascii_case("json") => Format::Json,
            _ => Format::Xml,
        }
    }
}

/// Carries a query out.
pub(crate) fn answer(cloud: &mut Cloud, query: Query) -> Response<Bytes> {
    let format = query.format();
    match query.command() {
        "login" => log_in(cloud, &query),
        "logout" => {
            if let Some(session) = &query.session {
                cloud.log_out(session);
            }
            let reply = Reply::ok("logoutresponse", json!({"description": "success"}));
            let gone = "sessionkey=; Expires=Thu, 01-Jan-1970 00:00:00 GMT; Max-Age=0";
            reply.with_cookie(gone).render(format)
        }
        _ => carry_out(cloud, query).render(format),
    }
}

/// What a command answers, or that it failed, as if the cloud had said so.
pub(crate) fn refuse(query: &Query, code: u16, text: &str) -> Response<Bytes> {
    let wrapper = catalog::command(query.command())
        .map_or_else(|| "errorresponse".to_owned(), catalog::Command::wrapper);
    Reply::error(wrapper, &ApiError::new(code, 9999, text)).render(query.format())
}

fn log_in(cloud: &mut Cloud, query: &Query) -> Response<Bytes> {
    if !query.post {
        let text = "Please use HTTP POST to authenticate using this API";
        return Reply::plain(StatusCode::METHOD_NOT_ALLOWED, text);
    }
    match cloud.log_in(&query.params) {
        Ok(login) => Reply::ok("loginresponse", login.body)
            .with_cookie(&format!("JSESSIONID={}; Path=/client; HttpOnly", login.session))
            .with_cookie(&format!("sessionkey={};HttpOnly;SameSite=Lax", login.key))
            .render(query.format()),
        Err(error) => Reply::error("loginresponse".to_owned(), &error).render(query.format()),
    }
}

/// Carries a command out for the cloud's administrator, who is not asked for a signature.
pub(crate) fn answer_root(cloud: &mut Cloud, params: Params) -> Response<Bytes> {
    let query = Query { params, post: true, session: None, session_key: None };
    let who = cloud.root();
    carry_out_as(cloud, query, who).render(Format::Json)
}

fn carry_out(cloud: &mut Cloud, query: Query) -> Reply {
    let command = catalog::command(query.command()).filter(|command| cloud.has(command));
    let who = cloud.identify(&query, command);
    carry_out_as(cloud, query, who)
}

fn carry_out_as(cloud: &mut Cloud, query: Query, who: Result<Identified, ApiError>) -> Reply {
    let name = query.command().to_owned();
    let command = catalog::command(&name).filter(|command| cloud.has(command));
    let wrapper = command.map_or_else(|| "errorresponse".to_owned(), catalog::Command::wrapper);
    let fail = |error: &ApiError| {
        let wrapper = if error.nameless { "errorresponse".to_owned() } else { wrapper.clone() };
        Reply::error(wrapper, error)
    };
    let who = match who {
        Ok(who) => who,
        Err(error) => return fail(&error),
    };
    let unavailable = |cloud: &Cloud, who: &Identified| {
        ApiError::unavailable(format!(
            "The API [{name}] does not exist or is not available for the account for user id [{}].",
            cloud.users[who.caller.user].uuid
        ))
    };
    let Some(command) = command.filter(|command| cloud.permits(who.caller, command)) else {
        return fail(&unavailable(cloud, &who));
    };
    let changes = !["list", "get", "query", "find"].iter().any(|verb| command.name.starts_with(verb));
    if cloud.settings.enforce_post_and_timestamps && changes && !query.post {
        return fail(&ApiError::new(
            400,
            9999,
            format!("State changing command {} needs to be sent using POST request", command.name),
        ));
    }
    let call = Call { caller: who.caller, command, params: query.params, post: query.post };
    match call.check(cloud).and_then(|()| (command.run)(cloud, &call)) {
        Ok(answer) => Reply::of(cloud, &call, answer),
        Err(error) => {
            if changes {
                cloud.complaints.refused(&call.params);
            }
            fail(&error)
        }
    }
}

fn empty(status: StatusCode, header: Option<(header::HeaderName, &'static str)>) -> Box<Response<Bytes>> {
    let mut response = Box::new(Response::new(Bytes::new()));
    *response.status_mut() = status;
    if let Some((name, value)) = header {
        response.headers_mut().insert(name, header::HeaderValue::from_static(value));
    }
    response
}

fn html(status: StatusCode, text: String) -> Box<Response<Bytes>> {
    let mut response = empty(status, Some((header::CONTENT_TYPE, "text/html;charset=iso-8859-1")));
    *response.body_mut() = text.into();
    response
}

fn not_found(path: &str) -> Box<Response<Bytes>> {
    let path = path.replace('&', "&amp;").replace('<', "&lt;");
    html(
        StatusCode::NOT_FOUND,
        format!(
            "<html>\n<head>\n<title>Error 404 Not Found</title>\n</head>\n<body><h2>HTTP ERROR 404 Not Found</h2>\n\
             <table>\n<tr><th>URI:</th><td>{path}</td></tr>\n</table>\n</body>\n</html>\n"
        ),
    )
}
